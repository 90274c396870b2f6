"""The driver meeting its cards: what it tells the kernel's log, and what /proc/driver/nvidia shows."""

from __future__ import annotations

import os
import shutil
from typing import Any, Dict, List

from .. import faults, files, paths, rig
from . import log, objects, pci

DIRECTORY = os.path.join(paths.PROC_DRIVER, "nvidia")
#: Compiler text of the second line of /proc/driver/nvidia/version.
GCC_LINE = "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14+deb12u1) "


def probe(this_rig: rig.Rig, nouveau: bool) -> bool:
    """Whether the driver finds a card that no other driver holds."""
    if not this_rig.cards:
        log.tell("NVRM: No NVIDIA GPU found.", log.ERR)
        return False
    for card in this_rig.cards if nouveau else ():
        log.tell("NVRM: GPU %s is already bound to nouveau." % card.bus_id, log.ERR)
    if nouveau:
        log.tell("NVRM: No NVIDIA devices probed.", log.ERR)
    return not nouveau


def initialize(this_rig: rig.Rig, module: Dict[str, Any]) -> bool:
    """Whether the cards come up: with firmware of the very version, and open modules for Blackwell."""
    for text in ("nvidia: loading out-of-tree module taints kernel.", "NVRM: loading " + banner(module)):
        log.tell(text)
    problems: List[str] = []
    for card in this_rig.cards:
        problems += _problems(card, module)
    for text in problems:
        log.tell(text, log.ERR)
    return not problems


def banner(module: Dict[str, Any]) -> str:
    """The driver's name and version, as it writes them."""
    kind = (
        "NVIDIA UNIX Open Kernel Module for x86_64"
        if module["license"] == objects.OPEN_LICENSE
        else "NVIDIA UNIX x86_64 Kernel Module"
    )
    return "%s  %s  Release Build  (dvs-builder@lab)  " % (kind, module["version"])


def show(this_rig: rig.Rig, module: Dict[str, Any]) -> None:
    """Bind the cards, and fill /proc/driver/nvidia."""
    files.write(os.path.join(DIRECTORY, "version"), "NVRM version: %s\n%s\n" % (banner(module), GCC_LINE))
    files.write(os.path.join(DIRECTORY, "params"), "EnableMSI: 1\nOpenRmEnableUnsupportedGpus: 1\n")
    for card in this_rig.cards:
        pci.bind(card, "nvidia")
        information = [
            "Model: \t\t " + card.name,
            "IRQ:   \t\t %d" % (16 + card.index),
            "GPU UUID: \t " + card.uuid,
            "Video BIOS: \t " + card.vbios.lower(),
            "Bus Type: \t PCIe",
            "DMA Size: \t 47 bits",
            "DMA Mask: \t 0x7fffffffffff",
            "Bus Location: \t " + card.bus_id,
            "Device Minor: \t %d" % card.index,
            "GPU Firmware: \t " + module["version"],
            "GPU Excluded:\t No",
        ]
        files.write(
            os.path.join(DIRECTORY, "gpus", card.bus_id, "information"), "\n".join(information) + "\n"
        )


def hide(this_rig: rig.Rig) -> None:
    """Let the cards go, and empty /proc/driver/nvidia."""
    shutil.rmtree(DIRECTORY)
    for card in this_rig.cards:
        pci.bind(card, None)


def _problems(card: rig.Card, module: Dict[str, Any]) -> List[str]:
    failed = "NVRM: GPU %s: rm_init_adapter failed, device minor number %d" % (card.bus_id, card.index)
    if not os.path.isdir(os.path.join(paths.FIRMWARE, module["version"])):
        name = "nvidia/%s/gsp_ga10x.bin" % module["version"]
        return ["nvidia %s: Direct firmware load for %s failed with error -2" % (card.bus_id, name), failed]
    if card.architecture == "Blackwell" and module["license"] != objects.OPEN_LICENSE:
        return [
            "NVRM: The NVIDIA GPU %s (PCI ID: %s:%s)" % (card.bus_id, card.pci_vendor, card.pci_device),
            "NVRM: installed in this system requires use of the NVIDIA open kernel modules.",
            failed,
        ]
    if faults.active("rebar") or faults.active("no-devices"):
        return ["NVRM: GPU %s: RmInitAdapter failed! (0x22:0x56:884)" % card.bus_id, failed]
    return []
