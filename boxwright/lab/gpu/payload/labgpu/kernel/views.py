"""Directories of /sys and /proc laid over the machine's own, so that a host sees its cards alone."""

from __future__ import annotations

import os
import subprocess
from typing import Callable, Set

from .. import files, paths

KEPT = paths.at("/run/lab-gpu/real")


def cover(target: str, hidden: Callable[[str], bool]) -> None:
    """Lay an empty writable directory over `target` and link back what the machine shows there.

    hidden: tells of a name of the machine (its own cards, its own driver) that this host must not see.
    Raises subprocess.CalledProcessError when the host may not mount.
    """
    if not paths.ON_HOST or os.path.ismount(target):
        os.makedirs(target, exist_ok=True)
        return
    existing = target
    while not os.path.isdir(existing):
        existing = os.path.dirname(existing)
    kept = os.path.join(KEPT, existing.strip("/").replace("/", "-"))
    os.makedirs(kept, exist_ok=True)
    names = [
        name
        for name in os.listdir(existing)
        if existing != target or not hidden(os.path.join(existing, name))
    ]
    # What is itself a link leads elsewhere in /sys and stays good; what is not will be seen where it is kept.
    links = {name: os.path.join(existing, name) for name in names}
    links = {
        name: os.path.realpath(path) if os.path.islink(path) else os.path.join(kept, name)
        for name, path in links.items()
    }
    mount("--bind", existing, kept)
    mount("-t", "tmpfs", "-o", "mode=755,nosuid,nodev,noexec", "lab-gpu", existing)
    for name, path in links.items():
        os.symlink(path, os.path.join(existing, name))
    os.makedirs(target, exist_ok=True)


def mount(*arguments: str) -> None:
    """Run mount(8)."""
    subprocess.run(["mount", *arguments], check=True, timeout=30)


def machine_device(addresses: Set[str]) -> Callable[[str], bool]:
    """Tells of a directory of /sys/bus/pci/devices whether this host must not see it.

    addresses: those of simulated cards, such as 0000:01:00, where the machine may have devices itself. Its
    graphics cards, and whatever else its NVIDIA cards bring, are hidden wherever they are.
    """

    def hidden(device: str) -> bool:
        vendor = (files.read(os.path.join(device, "vendor")) or "").strip()
        graphics = (files.read(os.path.join(device, "class")) or "").startswith("0x03")
        return graphics or vendor == "0x10de" or os.path.basename(device).rsplit(".", 1)[0] in addresses

    return hidden


def machine_driver(module: str) -> bool:
    """Whether a directory of /sys/module belongs to a graphics driver of the machine itself."""
    return os.path.basename(module).startswith(("nvidia", "nouveau"))
