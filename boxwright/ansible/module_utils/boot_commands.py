"""Other places that set the cards at boot: rc.local, whose plain lines are taken over; units and cron."""

from __future__ import annotations

import glob
import os
import re
import shutil
import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from ansible.module_utils import host_reading, smi_commands
from ansible.module_utils.command import write

RC_LOCAL = "/etc/rc.local"
UNITS = ("/etc/systemd/system/*.service", "/etc/systemd/system/*.service.d/*.conf")
CRONTABS = ("/etc/crontab", "/etc/cron.d/*", "/var/spool/cron/crontabs/*", "/var/spool/cron/*")
OURS = re.compile(r"/boxwright[^/]*$|/boxwright[^/]*\.d/")
#: Scripts that a unit or crontab calls are looked into where people put theirs.
SCRIPTS = re.compile(r"(?<![^\s=\"'@+!:-])/(?:usr/local|opt|root|home|srv|etc)/[^\s;\"'|&]+")
#: Longest script that is read, in bytes.
LONGEST = 256 << 10
#: A taken line becomes a command that does nothing: a comment would leave an `if` without a body.
TAKEN = ": # taken over by boxwright-gpu-tuning.service: "
_TAKEN_LINE = re.compile(r"^(?P<indent>\s*)" + re.escape(TAKEN) + r"(?P<line>.*)$")


def found(root: str = "") -> List[Dict[str, Any]]:
    """Every such command, with where it stands. root: prefix of every path."""
    entries = list(_rc_local(root))
    for path in _files(root, UNITS):
        entries += _called(root, path, lambda line: _after(r"^Exec\w+=[-@+!:|]*(.*)$", line))
    for path in _files(root, CRONTABS):
        entries += _called(root, path, lambda line: _after(r"^@reboot\s+(.*)$", line))
    return entries


def _rc_local(root: str) -> Iterator[Dict[str, Any]]:
    """Lines of rc.local; systemd runs it where it may be executed only."""
    path = root + RC_LOCAL
    text = _text(path) if os.access(path, os.X_OK) else None
    continued = False
    for number, line in enumerate((text or "").split("\n"), 1):
        # What was taken over already does nothing.
        command = None if _TAKEN_LINE.match(line) else smi_commands.read(line)
        ends = line.rstrip().endswith("\\")
        if command:
            movable = command.plain and not continued and not ends
            yield _entry(RC_LOCAL, number, line, command, movable)
        continued = ends


def _called(root: str, path: str, command_of: Callable[[str], Optional[str]]) -> Iterator[Dict[str, Any]]:
    """Commands of a unit or crontab, and of the scripts that they run."""
    shown = path[len(root) :]
    for number, line in enumerate((_text(path) or "").split("\n"), 1):
        called = command_of(line)
        if called is None:
            continue
        command = smi_commands.read(called)
        if command:
            yield _entry(shown, number, line, command, False)
            continue
        for script in SCRIPTS.findall(called):
            for place, text in enumerate((_text(root + script) or "").split("\n"), 1):
                command = smi_commands.read(text)
                if command:
                    yield _entry(script, place, text, command, False)


def _after(pattern: str, line: str) -> Optional[str]:
    match = re.match(pattern, line.strip())
    return match.group(1) if match else None


def _entry(
    path: str, number: int, line: str, command: smi_commands.SmiCommand, movable: bool
) -> Dict[str, Any]:
    return {
        "path": path,
        "line": number,
        "text": host_reading.masked(line.strip()[:200]),
        "what": command.what,
        "card": command.card,
        "movable": movable,
    }


def _files(root: str, patterns: Tuple[str, ...]) -> List[str]:
    names = sorted({path for pattern in patterns for path in glob.glob(glob.escape(root) + pattern)})
    return [path for path in names if os.path.isfile(path) and not OURS.search(path[len(root) :])]


def _text(path: str) -> Optional[str]:
    """A script's text, None where there is none, or it is no text or too long to be one."""
    try:
        if os.path.getsize(path) > LONGEST:
            return None
        text = _exact(path).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except OSError:
        return None
    return None if "\0" in text else text


def _exact(path: str) -> str:
    """A file to the byte: its lines end where the shell ends them, and it can be written as it was."""
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as stream:
        return stream.read()


def take_over(numbers: List[int], root: str = "") -> str:
    """Let these lines of rc.local do nothing; the path of the file's copy as it was."""
    path = os.path.realpath(root + RC_LOCAL)
    backup = "%s.before-%s" % (path, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()))
    shutil.copy2(path, backup)
    lines = _exact(path).split("\n")
    for number in numbers:
        line = lines[number - 1]
        bare = line.lstrip()
        lines[number - 1] = line[: len(line) - len(bare)] + TAKEN + bare
    write(path, "\n".join(lines), os.stat(path).st_mode & 0o7777)
    return backup


def taken(root: str = "") -> List[int]:
    """The lines of rc.local that were taken over."""
    lines = (_text(root + RC_LOCAL) or "").split("\n")
    return [number for number, line in enumerate(lines, 1) if _TAKEN_LINE.match(line)]


def give_back(root: str = "") -> None:
    """Let the lines that were taken over do again what they did; copies that hold nothing else go."""
    path = os.path.realpath(root + RC_LOCAL)
    lines = _exact(path).split("\n")
    text = "\n".join(_TAKEN_LINE.sub(r"\g<indent>\g<line>", line) for line in lines)
    write(path, text, os.stat(path).st_mode & 0o7777)
    for backup in glob.glob(glob.escape(path) + ".before-*"):
        if _exact(backup) == text:
            os.unlink(backup)
