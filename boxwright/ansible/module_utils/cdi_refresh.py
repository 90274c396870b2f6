"""What describes the cards anew by itself at every boot, before Docker starts: the driver may be another.

From 1.18 on the toolkit brings a service for it, which writes below /run/cdi: it only has to come before
Docker. Where it is not there, a unit of ours does the same with the specification of ours.
"""

from __future__ import annotations

import os
from typing import Dict, List, Optional

from ansible.module_utils import systemctl
from ansible.module_utils.command import read, write
from ansible.module_utils.systemd_unit import exec_line, render

UNITS = systemctl.UNIT_DIRECTORY
VENDOR = "nvidia-cdi-refresh.service"
OURS = "boxwright-cdi-refresh.service"
_TOOL = "/usr/bin/nvidia-ctk"
_MARK = ["Kept by Boxwright; edits are overwritten."]


def wanted(present: bool, spec: str) -> Dict[str, Optional[str]]:
    """Text by path, None for a file that is not to be. present: specifications are wanted at all."""
    has_vendor = systemctl.show(VENDOR).load == "loaded"
    return {
        os.path.join(UNITS, OURS): unit_text(spec) if present and not has_vendor else None,
        os.path.join(UNITS, VENDOR + ".d", "boxwright.conf"): order_text()
        if present and has_vendor
        else None,
    }


def unit_text(spec: str) -> str:
    """Our own unit. Docker waits for it and starts without it, too: a card may not answer."""
    unit = [
        ("Description", "NVIDIA cards described for containers as they are now"),
        ("After", "systemd-modules-load.service nvidia-persistenced.service"),
        ("Before", "docker.service"),
        ("ConditionPathExists", _TOOL),
    ]
    service = [
        ("Type", "oneshot"),
        ("ExecStart", exec_line([[_TOOL, "cdi", "generate", "--output=" + spec]])),
        ("TimeoutStartSec", "90"),
    ]
    text: str = render(
        [("Unit", unit), ("Service", service), ("Install", [("WantedBy", "docker.service")])], _MARK
    )
    return text


def order_text() -> str:
    """The drop-in that puts the toolkit's own service before Docker."""
    text: str = render([("Unit", [("Before", "docker.service")])], _MARK)
    return text


def differing(files: Dict[str, Optional[str]]) -> List[str]:
    """Those that are not as wanted, our unit also where it would not be started."""
    return [path for path, text in files.items() if read(path) != text or (text and _is_off(path))]


def _is_off(path: str) -> bool:
    return os.path.basename(path) == OURS and not systemctl.show(OURS).enabled


def apply(files: Dict[str, Optional[str]]) -> None:
    """Have the files as wanted, and our unit wanted by Docker. Raises UnitError."""
    paths = differing(files)
    if not paths:
        return
    ours = os.path.join(UNITS, OURS)
    if ours in paths and files[ours] is None:
        systemctl.call("disable", OURS)
    for path in paths:
        text = files[path]
        if text is not None:
            write(path, text)
            continue
        os.unlink(path)
        folder = os.path.dirname(path)
        if folder.endswith(".d") and not os.listdir(folder):
            os.rmdir(folder)
    systemctl.call("daemon-reload")
    if ours in paths and files[ours] is not None:
        systemctl.call("enable", OURS)


def run_vendor() -> None:
    """Have the toolkit's own service describe the cards now. Raises UnitError."""
    systemctl.restart(VENDOR)
