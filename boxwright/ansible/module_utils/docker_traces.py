"""Which Docker a host has: its programs, its unit, and who listens where a Docker daemon listens."""

from __future__ import annotations

import glob
import os
import pwd
import re
import shutil
import socket
import stat
from typing import Any, Dict, List, Optional

from ansible.module_utils.command import read, run

#: Where programs are looked for: root's own PATH may lack the snaps.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/snap/bin"
UNITS = ("docker.service", "snap.docker.dockerd.service")
SOCKETS = ("/run/docker.sock", "/var/run/docker.sock")
#: Sockets of daemons that users run for themselves.
USER_SOCKETS = "/run/user/*/docker.sock"
#: A wrapper is a script; a real client has some ten megabytes.
LONGEST_SCRIPT = 64 * 1024


def look(data_root: str) -> Dict[str, Any]:
    """All of it, as raw values. data_root: the declared one."""
    return {
        "programs": {name: _program(name) for name in ("docker", "dockerd")},
        "units": {unit: _unit(unit) for unit in UNITS},
        "listeners": _listeners(),
        "users": _users(),
        "filled": [data_root] if _filled(data_root) else [],
    }


def _program(name: str) -> Optional[Dict[str, Any]]:
    path = shutil.which(name, path=PATH)
    if path is None:
        return None
    real = os.path.realpath(path)
    small = os.path.isfile(real) and os.path.getsize(real) < LONGEST_SCRIPT
    text = (read(real) or "") if small else ""
    podman = os.path.basename(real).startswith("podman") or (text.startswith("#!") and "podman" in text)
    return {"path": path, "real": real, "podman": podman}


def _unit(unit: str) -> Dict[str, str]:
    done = run(["systemctl", "show", "--property", "LoadState,ActiveState,ExecStart", unit], timeout=15)
    shown = dict(line.partition("=")[::2] for line in done.stdout.splitlines() if "=" in line)
    found = re.search(r"path=(\S+)", shown.get("ExecStart", ""))
    return {
        "load": shown.get("LoadState", ""),
        "active": shown.get("ActiveState", ""),
        "program": found.group(1) if found else "",
    }


def _listeners() -> List[Dict[str, str]]:
    """The processes behind the system's own Docker socket, with the control groups that tell their units.

    One that has ended meanwhile holds nothing: a daemon that starts anew, or a child of its own that is about
    to become another program, which the daemon starts a few of whenever it is asked what it is.
    """
    found = []
    for line in run(["ss", "-Hlxp"], timeout=15).stdout.splitlines():
        if any(path in line.split() for path in SOCKETS):
            for name, pid in re.findall(r'\("([^"]+)",pid=(\d+)', line):
                cgroup = read("/proc/%s/cgroup" % pid)
                if cgroup:
                    found.append({"process": name, "pid": pid, "cgroup": cgroup})
    return found


def _users() -> List[Dict[str, str]]:
    """Users whose own daemon answers at its socket."""
    found = []
    for path in sorted(glob.glob(USER_SOCKETS)):
        try:
            state = os.stat(path)
            if not stat.S_ISSOCK(state.st_mode) or not _answers(path):
                continue
            name = pwd.getpwuid(state.st_uid).pw_name
        except OSError:
            continue
        except KeyError:
            name = str(state.st_uid)
        found.append({"user": name, "socket": path})
    return found


def _answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(2)
        try:
            probe.connect(path)
        except OSError:
            return False
        return True


def _filled(root: str) -> bool:
    """Whether a directory is a data root that a Docker daemon has used."""
    return any(os.path.isdir(os.path.join(root, name)) for name in ("image", "containers", "buildkit"))
