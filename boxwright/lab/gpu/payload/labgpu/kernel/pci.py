"""The PCI devices of simulated cards, as /sys/bus/pci/devices shows them before any driver is there."""

from __future__ import annotations

import os
import struct
from typing import Optional

from .. import files, paths
from ..rig import Card

DRIVERS = paths.at("/run/lab-gpu/drivers")
#: Transfer rate of one lane by PCIe generation, as sysfs words it.
SPEED = {1: "2.5", 2: "5.0", 3: "8.0", 4: "16.0", 5: "32.0"}
#: The HDMI audio function that stands beside every display function.
AUDIO_CLASS = "040300"
AUDIO_DEVICE = {"Blackwell": "22e8", "Ada Lovelace": "22ba", "Ampere": "1aef"}


def add(card: Card, generation: int) -> None:
    """Make both functions of a card. generation: the one that its link runs at now."""
    _function(card, 0, card.pci_device, card.pci_class, generation)
    _function(card, 1, AUDIO_DEVICE[card.architecture], AUDIO_CLASS, generation)


def bind(card: Card, driver: Optional[str]) -> None:
    """Show which driver holds a card's display function, or that none does."""
    link = os.path.join(paths.PCI_DEVICES, card.bus_id, "driver")
    if os.path.islink(link):
        os.unlink(link)
    if driver:
        # The drivers' own directory is the machine's; readers want no more than a directory of that name.
        os.makedirs(os.path.join(DRIVERS, driver), exist_ok=True)
        os.symlink(os.path.relpath(os.path.join(DRIVERS, driver), os.path.dirname(link)), link)


def _function(card: Card, number: int, device: str, pci_class: str, generation: int) -> None:
    bus_id = card.bus_id[:-1] + str(number)
    speed = SPEED[generation] + " GT/s PCIe"
    attributes = {
        "vendor": "0x" + card.pci_vendor,
        "device": "0x" + device,
        "subsystem_vendor": "0x" + card.pci_subsystem_vendor,
        "subsystem_device": "0x" + card.pci_subsystem_device,
        "class": "0x" + pci_class,
        "revision": "0xa1",
        "irq": str(16 + card.index),
        "enable": "1",
        "numa_node": str(card.numa_node),
        "local_cpulist": "0-%d" % ((os.cpu_count() or 1) - 1),
        "current_link_speed": speed,
        "current_link_width": str(card.pcie_width),
        "max_link_speed": SPEED[card.pcie_generation] + " GT/s PCIe",
        "max_link_width": str(card.pcie_width),
        "power_state": "D0",
        "resource": "\n".join(["0x%016x 0x%016x 0x%016x" % (0, 0, 0)] * 13),
        "modalias": "pci:v0000%sd0000%ssv0000%ssd0000%sbc%ssc%si%s"
        % (
            card.pci_vendor.upper(),
            device.upper(),
            card.pci_subsystem_vendor.upper(),
            card.pci_subsystem_device.upper(),
            pci_class[:2],
            pci_class[2:4],
            pci_class[4:],
        ),
    }
    if pci_class.startswith("0300"):
        attributes["boot_vga"] = "1" if card.index == 0 else "0"
    directory = os.path.join(paths.PCI_DEVICES, bus_id)
    for name, value in attributes.items():
        files.write(os.path.join(directory, name), value + "\n")
    files.write_bytes(os.path.join(directory, "config"), config(card, device, pci_class, generation))


def config(card: Card, device: str, pci_class: str, generation: int) -> bytes:
    """The 256 bytes of configuration space: header, and the PCI Express capability with the link's state.

    Layout: PCI Local Bus Specification 3.0, section 6.1; PCI Express Base Specification, section 7.5.3.
    """
    space = bytearray(256)
    numbers = (card.pci_vendor, device)
    struct.pack_into("<HHHH", space, 0x00, int(numbers[0], 16), int(numbers[1], 16), 0x0407, 0x0010)
    struct.pack_into("<I", space, 0x08, int(pci_class, 16) << 8 | 0xA1)
    space[0x0E] = 0x80  # one of several functions
    struct.pack_into(
        "<HH", space, 0x2C, int(card.pci_subsystem_vendor, 16), int(card.pci_subsystem_device, 16)
    )
    space[0x34] = 0x78  # the capability list begins there
    struct.pack_into("<BBH", space, 0x78, 0x10, 0x00, 0x0012)
    struct.pack_into("<I", space, 0x78 + 0x0C, card.pcie_generation | card.pcie_width << 4)
    struct.pack_into("<H", space, 0x78 + 0x12, generation | card.pcie_width << 4)
    struct.pack_into("<I", space, 0x78 + 0x2C, ((1 << card.pcie_generation) - 1) << 1)
    return bytes(space)
