"""Bars on a terminal, one a host, drawn in place by the processes that Ansible works with.

Each process leaves its host's line in the run's own directory and draws the lines of all. The cursor rests
above them, so that whoever prints next clears them away (`CLEAR`) and they come again below.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

#: Clears from the cursor to the end of the screen.
CLEAR = "\033[J"
#: Seconds after which a line that nobody renews is left out.
STALE_S = 15.0
WIDTH, BLOCKS = 100, 20


def terminal() -> str:
    """The terminal's device, as the verb that started the run found it; "" for none."""
    return os.environ.get("BOXWRIGHT_TERMINAL", "")


def bar(done: float, total: float) -> str:
    """A bar of a fixed width for a share."""
    full = round(BLOCKS * min(1.0, done / total)) if total else 0
    return "█" * full + "░" * (BLOCKS - full)


def board() -> Board | None:
    """The bars of this run; None where no terminal shows any."""
    report = os.environ.get("BOXWRIGHT_REPORT")
    return Board(Path(report).parent, terminal()) if report and terminal() else None


class Board:
    """The bars of one run, below its other lines."""

    def __init__(self, directory: Path, device: str) -> None:
        self._directory, self._device = directory, device

    def show(self, host: str, line: str) -> None:
        """Put a host's line on the board and draw all; "" takes it off."""
        self.update({host: line})

    def update(self, lines: Mapping[str, str]) -> None:
        """The same for several hosts, drawn once."""
        with (self._directory / "bars.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                for host, line in lines.items():
                    path = self._directory / f"bar-{quote(host, safe='')}"
                    if line:
                        path.write_text(line, encoding="utf-8")
                    else:
                        path.unlink(missing_ok=True)
                self._draw()
            finally:
                # Not by closing alone: a process that was forked meanwhile has the file open, too.
                fcntl.flock(lock, fcntl.LOCK_UN)

    def _draw(self) -> None:
        now, lines = time.time(), []
        for path in sorted(self._directory.glob("bar-*")):
            if now - path.stat().st_mtime < STALE_S:
                lines.append(path.read_text(encoding="utf-8")[:WIDTH])
        # No line may be broken by a narrow screen: the way back up is counted in lines.
        text = "\r" + CLEAR + "".join(f"\033[?7l{line}\033[?7h\n" for line in lines)
        with open(self._device, "w", encoding="utf-8", errors="replace") as screen:  # noqa: PTH123  # a device
            screen.write(text + (f"\033[{len(lines)}A" if lines else ""))
