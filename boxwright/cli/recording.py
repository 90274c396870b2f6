"""Who runs what, of which inventory: what a run leaves in the history of the boxes that it visits."""

from __future__ import annotations

import getpass
import os
import platform
import secrets
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from boxwright import __version__
from boxwright.ansible.runs import VARIABLE

GIT_TIMEOUT_S = 5


def recorded(verb: str, inventories: Sequence[Path], options: Sequence[str] = ()) -> dict[str, Any]:
    """The variable by which a playbook records its run, of this process."""
    return {VARIABLE: run(verb, inventories, options)}


def run(verb: str, inventories: Sequence[Path], options: Sequence[str] = ()) -> dict[str, Any]:
    """The run that this process begins now, as its first line says it."""
    return {
        "run": time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()) + "-" + secrets.token_hex(3),
        "verb": verb,
        "options": list(options),
        "user": user(),
        "controller": platform.node(),
        "process": os.getpid(),
        "boxwright": __version__,
        "inventory": [found for path in inventories if (found := checkout(path))],
    }


def user() -> str:
    """Who sits here: behind sudo, too."""
    if name := os.environ.get("SUDO_USER"):
        return name
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def checkout(path: Path) -> dict[str, Any] | None:
    """The commit that an inventory is of, and whether it was edited; None where git keeps none of it."""
    place = path if path.is_dir() else path.parent
    argv = ["git", "-C", str(place), "status", "--porcelain=v2", "--branch", "--ignored", "--", "."]
    try:
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=GIT_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.splitlines()
    commit = next((line.split()[-1] for line in lines if line.startswith("# branch.oid ")), "")
    ignored = any(line in ("! ./", "? ./") for line in lines)
    if done.returncode or not commit.isalnum() or ignored:
        return None
    return {"name": path.name, "commit": commit, "edited": any(line[:1] in "12u?" for line in lines)}


def alive(controller: str, process: int) -> bool | None:
    """Whether a process of a controller's still runs; None on another machine than this one."""
    if controller != platform.node() or process <= 0:
        return None
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OverflowError:
        # A number that no process has: the line was written by nobody of ours.
        return False
    except OSError:
        return True
    return True
