"""Reading and changing the state of systemd units."""

from __future__ import annotations

import time
from typing import Dict, List, NamedTuple, Optional

from ansible.module_utils.command import Result, run

UNIT_DIRECTORY = "/etc/systemd/system"
_SHOWN = (
    "LoadState",
    "ActiveState",
    "SubState",
    "Result",
    "NRestarts",
    "ExecMainCode",
    "ExecMainStatus",
    "UnitFileState",
    "NeedDaemonReload",
    "ExecMainStartTimestamp",
)


class UnitError(Exception):
    """systemd refused or failed to do what was asked."""


class UnitState(NamedTuple):
    """A unit as systemd sees it.

    restarts: starts by itself since a person or a program last started it. began: start of its main process
    in seconds since 1970, None when there is none. stale: its file is newer than what systemd has read.
    """

    load: str
    active: str
    sub: str
    result: str
    restarts: int
    code: str
    status: int
    enabled: bool
    stale: bool
    began: Optional[float] = None

    @property
    def running(self) -> bool:
        """Whether its main process runs."""
        return self.active == "active" and self.sub == "running"

    @property
    def down(self) -> bool:
        """Whether it ended: failed, stopped, or waiting to be started once more."""
        return self.active in ("failed", "inactive") or self.sub == "auto-restart"

    @property
    def ending(self) -> str:
        """How its main process ended, for a message."""
        if self.result == "start-limit-hit":
            return "ended too often in a row; systemd gave up starting it"
        if self.code in ("2", "3", "killed", "dumped"):
            return "was killed by signal %d" % self.status
        return "ended with exit status %d" % self.status


def show(unit: str) -> UnitState:
    """The state of a unit; one that systemd does not know is "not-found" and inactive."""
    done: Result = run(["systemctl", "show", "--timestamp=unix", "--property", ",".join(_SHOWN), unit])
    if done.rc:
        raise UnitError("systemctl show %s: %s" % (unit, done.text))
    values: Dict[str, str] = dict(
        line.partition("=")[::2] for line in done.stdout.splitlines() if "=" in line
    )
    return UnitState(
        load=values.get("LoadState", ""),
        active=values.get("ActiveState", ""),
        sub=values.get("SubState", ""),
        result=values.get("Result", ""),
        restarts=int(values.get("NRestarts") or 0),
        code=values.get("ExecMainCode", ""),
        status=int(values.get("ExecMainStatus") or 0),
        enabled=values.get("UnitFileState") == "enabled",
        stale=values.get("NeedDaemonReload") == "yes",
    )


def call(verb: str, *units: str, timeout: float = 120) -> None:
    """Run `systemctl VERB UNIT…`. Raises UnitError with what it said."""
    done: Result = run(["systemctl", verb, *list(units)], timeout=timeout)
    if done.rc:
        raise UnitError("systemctl %s %s: %s" % (verb, " ".join(units), done.text))


def restart(unit: str, timeout: float = 120) -> None:
    """Start a unit anew, also one that had failed too often. Raises UnitError when it does not even begin."""
    # A unit that never failed cannot be reset on older systemd; that is no failure of the restart.
    run(["systemctl", "reset-failed", unit])
    call("restart", unit, timeout=timeout)


class Journal:
    """The lines that one unit's programs write, from a moment on; systemd's own about it are left out."""

    #: Lines of the past that are read at most.
    LIMIT = 5000

    def __init__(self, identifier: str, since: Optional[float] = None) -> None:
        self._identifier = identifier
        self._since = time.time() if since is None else since
        self._cursor: Optional[str] = None

    def new(self) -> List[str]:
        """The lines since the last call."""
        place = (
            ["--after-cursor=" + self._cursor]
            if self._cursor
            else ["--since=@%.3f" % self._since, "--lines=%d" % self.LIMIT]
        )
        done: Result = run(
            [
                "journalctl",
                "--identifier=" + self._identifier,
                "--output=cat",
                "--no-pager",
                "--quiet",
                "--show-cursor",
                *place,
            ]
        )
        if done.rc:
            raise UnitError("journalctl: %s" % done.text)
        # Not splitlines(): a progress bar's carriage returns do not end a line.
        lines: List[str] = [line for line in done.stdout.split("\n") if line]
        if lines and lines[-1].startswith("-- cursor: "):
            self._cursor = lines.pop()[len("-- cursor: ") :]
        return lines
