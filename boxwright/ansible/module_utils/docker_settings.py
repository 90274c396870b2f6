"""What Boxwright asks of the Docker daemon: settings, and what a change of them takes to work."""

from __future__ import annotations

import shutil
from typing import Any, Dict, Optional

from ansible.module_utils.docker_daemon import RELOADABLE, RESETTING, Version

RUNTIME = "nvidia-container-runtime"


def ours(version: Optional[Version], current: Dict[str, Any]) -> Dict[str, Any]:
    """What Boxwright itself needs in the file.

    A working `runtimes.nvidia` of somebody else (a program given by its whole path) is as good as ours and
    stays; a bare name is looked for by Docker, and `runc` would be found.
    """
    wanted: Dict[str, Any] = {}
    if version is None or version.knows_cdi:
        wanted["features"] = {"cdi": True}
    runtimes = current.get("runtimes")
    theirs = runtimes.get("nvidia") if isinstance(runtimes, dict) else None
    path = theirs.get("path") if isinstance(theirs, dict) else None
    if not (isinstance(path, str) and path.startswith("/") and shutil.which(path)):
        wanted["runtimes"] = {"nvidia": {"path": RUNTIME}}
    return wanted


def overlay(below: Dict[str, Any], above: Dict[str, Any]) -> Dict[str, Any]:
    """Both mappings in one, the second one's settings before the first one's."""
    result = dict(below)
    for key, value in above.items():
        mine = result.get(key)
        result[key] = overlay(mine, value) if isinstance(mine, dict) and isinstance(value, dict) else value
    return result


def due(before: Dict[str, Any], after: Dict[str, Any]) -> str:
    """What a change of the file takes to work: none, reload or restart."""
    changed = {key for key in {*before, *after} if before.get(key) != after.get(key)}
    if not changed:
        return "none"
    left = {*before} - {*after} - RESETTING
    return "reload" if changed <= RELOADABLE and not left else "restart"
