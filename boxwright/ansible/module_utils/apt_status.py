"""How far apt-get is: what it writes to its status pipe, as shares.

Source: apt's doc/progress-reporting.md (dlstatus while it fetches, pmstatus while dpkg works).
"""

from __future__ import annotations

import contextlib
import os
import threading
from typing import Callable, Dict, List, NamedTuple, Optional

from ansible.module_utils.command import Result, run

#: What apt fetches (`update`: the lists), and what dpkg does.
FETCHING, CHANGING = "dlstatus", "pmstatus"
#: Seconds for what is left in the pipe after apt-get has ended; what it started may keep it open.
PATIENCE_S = 5


class Share(NamedTuple):
    """One line: FETCHING or CHANGING, and how much of it is done, in percent."""

    kind: str
    percent: float


def parse(line: str) -> Optional[Share]:
    """A line of the status pipe; None for what tells no share (a question, an error)."""
    cells = line.split(":", 3)
    if len(cells) != 4 or cells[0] not in (FETCHING, CHANGING):
        return None
    # A package of another architecture is told as name:arch: the share is the first number behind the name.
    for cell in [cells[2], *cells[3].split(":", 1)[:1]]:
        try:
            percent = float(cell)
        except ValueError:
            continue
        if 0 <= percent <= 100:
            return Share(cells[0], percent)
    return None


def watched(argv: List[str], told: Callable[[Share], None], timeout: float, env: Dict[str, str]) -> Result:
    """Run apt-get with a status pipe; told: called with each step."""
    source, sink = os.pipe()
    reader = threading.Thread(target=_read, args=(source, told), daemon=True)
    reader.start()
    try:
        words = [argv[0], "-o", "APT::Status-Fd=%d" % sink, *argv[1:]]
        done: Result = run(words, timeout=timeout, env=env, keep=(sink,))
        return done
    finally:
        os.close(sink)
        reader.join(PATIENCE_S)


def _read(source: int, told: Callable[[Share], None]) -> None:
    """Whatever becomes of a step, the pipe is read on: apt-get would wait where it is full."""
    with os.fdopen(source, encoding="utf-8", errors="replace") as stream:
        for line in stream:
            step = parse(line.rstrip("\n"))
            if step is not None:
                # That nobody can be told how far it is keeps nothing from going on.
                with contextlib.suppress(OSError):
                    told(step)
