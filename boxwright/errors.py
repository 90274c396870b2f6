"""Errors that a person can act on: what is wrong, where, why, and the ways out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from boxwright.texts import from_home

#: Exit statuses of every verb; 0: done as asked.
#: Something failed on the way: a host, a test, a download.
EXIT_FAILED = 1
#: What was typed or declared is wrong; nothing was begun.
EXIT_BAD_INPUT = 2
#: The plan says that it cannot work; nothing was changed.
EXIT_REFUSED = 3
#: Stopped by hand (Ctrl-C), as shells tell it.
EXIT_INTERRUPTED = 130


@dataclass
class UserError(Exception):
    """A failure that is told to the user as it stands, without a traceback.

    what: one sentence. where: "file:line" or a host's name. why: optional explanation.
    ways_out: what the user can do, most likely first. status: the process exit status.
    left: sentences, what a run that failed has left as it was, and what not.
    log: the file with all that Ansible said, where a run of it failed.
    """

    what: str
    where: str | None = None
    why: str | None = None
    ways_out: tuple[str, ...] = ()
    status: int = EXIT_FAILED
    log: str | None = None
    left: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.where}: {self.what}" if self.where else self.what]
        if self.why:
            lines.append(f"  {self.why}")
        lines += [f"  {'      ' if n else 'Left: '}{one}" for n, one in enumerate(self.left)]
        lines += [
            f"  {'Either' if len(self.ways_out) > 1 and not n else 'or    ' if n else 'Do:'} {way}"
            for n, way in enumerate(self.ways_out)
        ]
        if self.log:
            lines.append(f"  All that Ansible said: {from_home(self.log)}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """The same for a program: what `--json` prints under the key `error`. Its keys are stable."""
        return {
            "what": self.what,
            "where": self.where,
            "why": self.why,
            "left": list(self.left),
            "ways_out": list(self.ways_out),
            "status": self.status,
            "log": self.log,
            "problems": [],
        }
