"""The driver as the container toolkit sees it."""

from __future__ import annotations

import glob
import os
import subprocess
from typing import List, NamedTuple

from .. import paths, rig
from ..smi.driver import Driver, Failure, connect

LIBRARIES = "/usr/lib/x86_64-linux-gnu"
LIBRARY = paths.at(LIBRARIES + "/libnvidia-ml.so.1")
#: Words of NVML for what nvidia-smi tells by its exit status.
ERRORS = {
    6: ("ERROR_GPU_NOT_FOUND", "no devices found"),
    9: ("ERROR_DRIVER_NOT_LOADED", "driver not loaded"),
    12: (
        "ERROR_LIBRARY_NOT_FOUND",
        "libnvidia-ml.so.1: cannot open shared object file: no such file or directory",
    ),
    18: ("ERROR_LIB_RM_VERSION_MISMATCH", "driver/library version mismatch"),
    255: ("ERROR_UNKNOWN", "unknown error"),
}


class NvmlError(Exception):
    """NVML refused. symbol: its constant; text: as libnvidia-container words it."""

    def __init__(self, status: int) -> None:
        self.symbol, self.text = ERRORS[status]
        super().__init__(self.symbol)


def driver() -> Driver:
    """The driver that answers, with every card. Raises NvmlError."""
    if not os.path.exists(LIBRARY):
        raise NvmlError(12)
    try:
        return connect(os.path.basename(os.path.realpath(LIBRARY)).split(".so.", 1)[1])
    except Failure as failure:
        raise NvmlError(failure.status) from failure


def load_modules() -> None:
    """Have the driver's modules loaded and its device nodes made, where this program may."""
    if os.geteuid() == 0 and os.path.exists(paths.at("/usr/bin/nvidia-modprobe")):
        subprocess.run(["nvidia-modprobe", "-u", "-m", "-c", "0"], check=False, timeout=60)


class Injection(NamedTuple):
    """What a container gets. nodes: devices; mounts: files and directories; links: [target, link]."""

    nodes: List[str]
    mounts: List[str]
    links: List[List[str]]


def card_node(card: rig.Card) -> str:
    """A card's device node; its minor number is in its address order, whatever the card's index is."""
    return "/dev/nvidia%d" % next(
        minor for minor, known in enumerate(rig.load().cards) if known.uuid == card.uuid
    )


def common(version: str) -> Injection:
    """What every container with cards gets: control nodes, the driver's files, and the simulated hardware."""
    nodes = [
        path
        for path in ("/dev/nvidia-modeset", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidiactl")
        if os.path.exists(paths.at(path))
    ]
    libraries = sorted(glob.glob(paths.at(LIBRARIES + "/lib*.so." + version)))
    files = [*("/usr/bin/nvidia-smi", "/usr/bin/nvidia-persistenced"), *map(_absolute, libraries)]
    files += [_absolute(path) for path in sorted(glob.glob(paths.FIRMWARE + "/" + version + "/*.bin"))]
    mounts = [path for path in files if os.path.exists(paths.at(path))]
    links = [["libcuda.so.1", LIBRARIES + "/libcuda.so"]]
    return Injection(nodes, [*mounts, "/etc/lab-gpu", "/run/lab-gpu"], links)


def _absolute(path: str) -> str:
    return "/" + os.path.relpath(path, paths.ROOT)
