"""Reading and changing the state of systemd units."""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

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
    "InvocationID",
    "ExecMainStartTimestamp",
    "DropInPaths",
)


class UnitError(Exception):
    """systemd refused or failed to do what was asked."""


class UnitState(NamedTuple):
    """A unit as systemd sees it.

    restarts: starts by itself since a person or a program last started it. began: start of its main process
    in seconds since 1970, None when there is none. stale: its file is newer than what systemd has read.
    invocation: the id of its last start, which every line that it has written since then bears. drop_ins:
    files that change what its own says.
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
    invocation: str = ""
    drop_ins: Tuple[str, ...] = ()

    @property
    def running(self) -> bool:
        """Whether its main process runs."""
        return self.active == "active" and self.sub == "running"

    @property
    def down(self) -> bool:
        """Whether it ended: failed, stopped, or waiting to be started once more."""
        return self.active in ("failed", "inactive") or "auto-restart" in self.sub

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
    began = values.get("ExecMainStartTimestamp")
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
        began=float(began.lstrip("@")) if began else None,
        invocation=values.get("InvocationID", ""),
        drop_ins=tuple(values.get("DropInPaths", "").split()),
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
    """Lines that a unit's programs write; systemd's own lines about it are left out."""

    #: Lines of the past that are read at most.
    LIMIT = 5000

    def __init__(self, match: Sequence[str]) -> None:
        self._match = list(match)
        self._cursor: Optional[str] = None

    @classmethod
    def of_start(cls, invocation: str) -> Journal:
        """What was written since one start of a unit, and nothing of the start before."""
        return cls(["_SYSTEMD_INVOCATION_ID=" + invocation])

    @classmethod
    def since(cls, identifier: str, moment: float) -> Journal:
        """What one program writes from a moment on, in seconds since 1970."""
        return cls(["--identifier=" + identifier, "--since=@%.3f" % moment])

    def new(self) -> List[str]:
        """The lines since the last call."""
        place = ["--after-cursor=" + self._cursor] if self._cursor else ["--lines=%d" % self.LIMIT]
        argv = ["journalctl", "--output=cat", "--no-pager", "--quiet", "--show-cursor", *place, *self._match]
        done: Result = run(argv)
        if done.rc:
            raise UnitError("journalctl: %s" % done.text)
        # Not splitlines(): a progress bar's carriage returns do not end a line.
        lines: List[str] = [line for line in done.stdout.split("\n") if line]
        if lines and lines[-1].startswith("-- cursor: "):
            self._cursor = lines.pop()[len("-- cursor: ") :]
        return lines
