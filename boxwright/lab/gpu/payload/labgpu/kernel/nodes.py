"""Device nodes of the driver in /dev."""

from __future__ import annotations

import contextlib
import os
import stat
from typing import Iterable, List, Tuple

from .. import paths

#: Character device major of the driver's main nodes (Documentation/admin-guide/devices.txt: 195).
NVIDIA_MAJOR = 195
#: The kernel gives nvidia-uvm a free major at load time; this is a usual one.
UVM_MAJOR = 510

Node = Tuple[str, int, int]
CONTROL: List[Node] = [("nvidiactl", NVIDIA_MAJOR, 255)]
MODESET: List[Node] = [("nvidia-modeset", NVIDIA_MAJOR, 254)]
UVM: List[Node] = [("nvidia-uvm", UVM_MAJOR, 0), ("nvidia-uvm-tools", UVM_MAJOR, 1)]


def cards(count: int) -> List[Node]:
    """The nodes of the first `count` cards."""
    return [("nvidia%d" % index, NVIDIA_MAJOR, index) for index in range(count)]


def make(nodes: Iterable[Node]) -> None:
    """Make those that are missing, for every user, as the driver's default permissions say."""
    os.makedirs(paths.DEV, exist_ok=True)
    for name, major, minor in nodes:
        path = os.path.join(paths.DEV, name)
        if os.path.exists(path):
            continue
        if paths.ON_HOST:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(major, minor))
        else:
            with open(path, "w", encoding="utf-8"):
                pass
        os.chmod(path, 0o666)


def remove(nodes: Iterable[Node]) -> None:
    """Remove those that are there."""
    for name, _, _ in nodes:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(paths.DEV, name))
