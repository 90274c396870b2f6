"""Where the simulated layer keeps things; LAB_GPU_ROOT moves all of them below another directory."""

from __future__ import annotations

import os

ROOT = os.environ.get("LAB_GPU_ROOT", "/")
#: True on a lab host, False where a test runs the same code below a directory of its own.
ON_HOST = ROOT == "/"


def at(path: str) -> str:
    """The absolute `path` of a lab host, below LAB_GPU_ROOT."""
    return os.path.join(ROOT, path.lstrip("/"))


RIG = at("/etc/lab-gpu/rig.json")
FAULTS = at("/etc/lab-gpu/faults.json")
STATE = at("/run/lab-gpu/state.json")
DEV = at("/dev")
PCI_DEVICES = at("/sys/bus/pci/devices")
SYS_MODULE = at("/sys/module")
PROC_DRIVER = at("/proc/driver")
DKMS_TREE = at("/var/lib/dkms")
SOURCES = at("/usr/src")
FIRMWARE = at("/usr/lib/firmware/nvidia")
PERSISTENCED_PID = at("/run/nvidia-persistenced/nvidia-persistenced.pid")


def kernel() -> str:
    """The release of the running kernel, as `uname -r` says it."""
    return os.environ.get("LAB_GPU_KERNEL") or os.uname().release


def modules_directory(release: str) -> str:
    """/lib/modules of a kernel release."""
    return at("/lib/modules/" + release)
