"""Commands at boot that set the cards beside Boxwright: those of rc.local are taken over, all are told."""

from __future__ import annotations

import glob
import os
import re
import shutil
import time
from typing import Any, Dict, Iterator, List

from ansible.module_utils import boot_places, boot_scripts
from ansible.module_utils.boot_scripts import Reading, exact
from ansible.module_utils.command import write

RC_LOCAL = "/etc/rc.local"
#: A taken line becomes a command that does nothing: a comment would leave an `if` without a body.
TAKEN = ": # taken over by boxwright-gpu-tuning.service: "
_TAKEN_LINE = re.compile(r"^(?P<indent>\s*)" + re.escape(TAKEN) + r"(?P<line>.*)$")


def found(root: str = "") -> List[Dict[str, Any]]:
    """Every such command, with where it stands. root: prefix of every path."""
    reading = Reading(root)
    entries = list(_rc_local(reading))
    entries += [call.entry(False) for call in boot_places.calls(reading)]
    return entries


def _rc_local(reading: Reading) -> Iterator[Dict[str, Any]]:
    """Of rc.local, and of what it runs; systemd runs it where it may be executed only."""
    path = reading.root + RC_LOCAL
    if os.access(path, os.X_OK):
        for call in reading.script(RC_LOCAL):
            yield call.entry(call.plain and call.path == RC_LOCAL)


def take_over(numbers: List[int], root: str = "") -> str:
    """Let these lines of rc.local do nothing; the path of the file's copy as it was."""
    path = os.path.realpath(root + RC_LOCAL)
    backup = "%s.before-%s" % (path, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()))
    shutil.copy2(path, backup)
    lines = exact(path).split("\n")
    for number in numbers:
        line = lines[number - 1]
        bare = line.lstrip()
        lines[number - 1] = line[: len(line) - len(bare)] + TAKEN + bare
    write(path, "\n".join(lines), os.stat(path).st_mode & 0o7777)
    return backup


def taken(root: str = "") -> List[int]:
    """The lines of rc.local that were taken over."""
    lines = (boot_scripts.text_of(root + RC_LOCAL) or "").split("\n")
    return [number for number, line in enumerate(lines, 1) if _TAKEN_LINE.match(line)]


def give_back(root: str = "") -> None:
    """Let the lines that were taken over do again what they did; copies that hold nothing else go."""
    path = os.path.realpath(root + RC_LOCAL)
    lines = exact(path).split("\n")
    text = "\n".join(_TAKEN_LINE.sub(r"\g<indent>\g<line>", line) for line in lines)
    write(path, text, os.stat(path).st_mode & 0o7777)
    for backup in glob.glob(glob.escape(path) + ".before-*"):
        if exact(backup) == text:
            os.unlink(backup)
