"""Module files below /lib/modules: JSON in the place of machine code."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Optional

from .. import files, paths

#: Where DKMS puts modules on Debian, below /lib/modules/RELEASE.
DKMS_DESTINATION = "updates/dkms"
#: What each module of the driver needs to be loaded before it.
NEEDS: Dict[str, List[str]] = {
    "nvidia": [],
    "nvidia-modeset": ["nvidia"],
    "nvidia-drm": ["nvidia-modeset"],
    "nvidia-uvm": ["nvidia"],
    "nvidia-peermem": ["nvidia"],
}
OPEN_LICENSE = "Dual MIT/GPL"
PROPRIETARY_LICENSE = "NVIDIA"


def canonical(name: str) -> str:
    """A module's name as the kernel writes it: with underscores."""
    return name.replace("-", "_")


def directory(release: str) -> str:
    """Where the driver's modules of a kernel are."""
    return os.path.join(paths.modules_directory(release), DKMS_DESTINATION)


def find(name: str, release: str) -> Optional[str]:
    """The path of a module file of the driver, or None. Either spelling of the name does."""
    for candidate in NEEDS:
        path = os.path.join(directory(release), candidate + ".ko")
        if canonical(candidate) == canonical(name) and os.path.exists(path):
            return path
    return None


def load(path: str) -> Dict[str, Any]:
    """What a module file says of itself: name, version, license, kernel."""
    content: Dict[str, Any] = files.read_json(path)
    return content


def render(name: str, version: str, license_: str, release: str) -> str:
    """The text of a module file, built for one kernel."""
    content = {"name": name, "version": version, "license": license_, "kernel": release}
    return json.dumps(content, sort_keys=True) + "\n"


def index(release: str) -> None:
    """Write modules.dep, as depmod does after a module was added or removed."""
    lines = []
    for name, needs in NEEDS.items():
        if os.path.exists(os.path.join(directory(release), name + ".ko")):
            closure: List[str] = []
            while needs:
                closure += needs
                needs = [other for need in needs for other in NEEDS[need]]
            lines.append(
                "%s/%s.ko:%s"
                % (
                    DKMS_DESTINATION,
                    name,
                    "".join(" %s/%s.ko" % (DKMS_DESTINATION, need) for need in closure),
                )
            )
    files.write(
        os.path.join(paths.modules_directory(release), "modules.dep"), "".join(line + "\n" for line in lines)
    )
