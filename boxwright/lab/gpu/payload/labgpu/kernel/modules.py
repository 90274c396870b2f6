"""Loading and unloading modules, and what the kernel shows of them."""

from __future__ import annotations

import os
import shutil
from typing import Any, Dict, List

from .. import faults, files, paths, rig, state
from . import driver, log, nodes, objects, pci

#: The modules in the order in which they can be unloaded.
UNLOAD_ORDER = ("nvidia_drm", "nvidia_uvm", "nvidia_peermem", "nvidia_modeset", "nvidia")


class KernelError(Exception):
    """The kernel refused; the text is that of its errno, as modprobe prints it."""


def loaded() -> Dict[str, Any]:
    """Simulated modules in the kernel, by their kernel names."""
    return state.read()["modules"]


def present(name: str) -> bool:
    """Whether a module is in the kernel, simulated or the machine's own."""
    return os.path.isdir(os.path.join(paths.SYS_MODULE, objects.canonical(name)))


def load(name: str) -> None:
    """Load a module of the driver and those it needs, from what DKMS installed for the running kernel.

    Raises FileNotFoundError when there is no such module, KernelError when the kernel refuses it.
    """
    name = objects.canonical(name)
    release = paths.kernel()
    path = objects.find(name, release)
    if path is None:
        raise FileNotFoundError(name)
    module = objects.load(path)
    for needed in objects.NEEDS[module["name"]]:
        load(needed)
    if name in loaded():
        return
    if module["kernel"] != release:
        raise KernelError("Exec format error")
    if faults.active("secure-boot"):
        log.tell("Loading of module with unavailable key is rejected", log.ERR)
        raise KernelError("Key was rejected by service")
    this_rig = rig.load()
    if name == "nvidia" and not driver.probe(this_rig, "nouveau" in loaded()):
        raise KernelError("No such device")
    with state.change() as now:
        now["modules"][name] = {"version": module["version"], "license": module["license"]}
        if name == "nvidia":
            now["modules"][name]["initialized"] = driver.initialize(this_rig, module)
            now["cards"] = {}
    _show(name, module["version"])
    if name == "nvidia":
        driver.show(this_rig, module)
    nodes.make(
        {
            "nvidia": nodes.CONTROL + nodes.cards(len(this_rig.cards)),
            "nvidia_modeset": nodes.MODESET,
            "nvidia_uvm": nodes.UVM,
        }.get(name, [])
    )


def load_nouveau() -> None:
    """Bind every card to nouveau, as a kernel does that was told nothing else."""
    with state.change() as now:
        now["modules"]["nouveau"] = {"version": "", "license": "GPL and additional rights"}
    _show("nouveau", "")
    for card in rig.load().cards:
        pci.bind(card, "nouveau")


def unload(name: str) -> None:
    """Unload one module. Raises KernelError("in use …") when it is held, KeyError when it is absent."""
    name = objects.canonical(name)
    if name not in loaded():
        raise KeyError(name)
    holders = users(name)
    if holders:
        raise KernelError("in use" + (" by: " + " ".join(holders) if holders != [""] else ""))
    with state.change() as now:
        del now["modules"][name]
        if name == "nvidia":
            now["cards"] = {}
    shutil.rmtree(os.path.join(paths.SYS_MODULE, name))
    this_rig = rig.load()
    if name == "nvidia":
        driver.hide(this_rig)
    nodes.remove(
        {
            "nvidia": nodes.CONTROL + nodes.cards(len(this_rig.cards)),
            "nvidia_modeset": nodes.MODESET,
            "nvidia_uvm": nodes.UVM,
        }.get(name, [])
    )


def users(name: str) -> List[str]:
    """The modules that hold a module; [""] when programs or the console do."""
    if name == "nouveau":
        return [""]  # the console's frame buffer
    holders = [
        objects.canonical(other)
        for other, needs in objects.NEEDS.items()
        if name in map(objects.canonical, needs) and objects.canonical(other) in loaded()
    ]
    if not holders and name in ("nvidia", "nvidia_uvm") and (persistenced() or containers()):
        return [""]
    return holders


def persistenced() -> bool:
    """Whether the persistence daemon runs, which keeps the cards open."""
    text = files.read(paths.PERSISTENCED_PID)
    return bool(text) and os.path.isdir("/proc/" + str(text).strip())


def containers() -> List[int]:
    """Processes of containers that were given the driver's control device: they keep the module in use."""
    found = []
    for entry in os.listdir("/proc") if paths.ON_HOST else []:
        if not entry.isdigit():
            continue
        try:
            inside = os.stat("/proc/%s/root/dev" % entry)
            if inside.st_dev != os.stat("/dev").st_dev and os.path.exists(
                "/proc/%s/root/dev/nvidiactl" % entry
            ):
                found.append(int(entry))
        except OSError:
            continue  # the process is gone, or is not to be looked into
    return found


def _show(name: str, version: str) -> None:
    directory = os.path.join(paths.SYS_MODULE, name)
    files.write(os.path.join(directory, "initstate"), "live\n")
    files.write(os.path.join(directory, "refcnt"), "0\n")
    if version:
        files.write(os.path.join(directory, "version"), version + "\n")
