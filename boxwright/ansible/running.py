"""The step that runs on each host, and for how long already: drawn in place, or a line every half minute.

Steps whose module tells how far it is (action.watched) show themselves.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass

from boxwright.ansible.bars import Board
from boxwright.texts import lasting

#: Seconds before a step is worth a line on a terminal, and between lines where there is none.
SHORT_S, INTERVAL_S = 3.0, 30.0
POLL_S = 1.0


@dataclass
class _Step:
    name: str
    began: float
    told: float


class Running:
    """What runs where. Every method may be called from any thread."""

    def __init__(self) -> None:
        self._steps: dict[str, _Step] = {}
        self._lock = threading.Lock()

    def begin(self, host: str, name: str, now: float) -> None:
        """A step begins on a host."""
        with self._lock:
            self._steps[host] = _Step(name, now, now)

    def end(self, host: str) -> bool:
        """It has ended; whether there was one."""
        with self._lock:
            return self._steps.pop(host, None) is not None

    def drawn(self, now: float) -> dict[str, str]:
        """Host -> its line, of the steps that are no short ones."""
        with self._lock:
            steps = {host: step for host, step in self._steps.items() if now - step.began >= SHORT_S}
        return {host: line(host, step.name, now - step.began) for host, step in steps.items()}

    def due(self, now: float) -> list[str]:
        """The lines that are due where nothing is drawn in place."""
        lines = []
        with self._lock:
            for host, step in self._steps.items():
                if now - step.told >= INTERVAL_S:
                    step.told = now
                    lines.append(line(host, step.name, now - step.began))
        return lines


def line(host: str, name: str, seconds: float) -> str:
    """`  box1  The host is rebooted  1 min`."""
    return f"  {host}  {name}  {lasting(seconds)}"


class Ticker:
    """Shows what runs, from a thread of its own. say: prints a line. board: None where there is no terminal.

    quiet: held while something is drawn, so that no process is forked in the middle of it.
    """

    def __init__(
        self,
        running: Running,
        say: Callable[[str], None],
        board: Board | None,
        quiet: AbstractContextManager[object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._running, self._say, self._board, self._quiet, self._clock = running, say, board, quiet, clock
        self._done, self._shown = threading.Event(), set[str]()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to show, once."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Show nothing any more."""
        self._done.set()
        if self._thread is not None:
            self._thread.join(timeout=5)
        self.tick({})

    def ended(self, host: str) -> None:
        """A host's step has ended: its line goes at once, so that what is printed next has its place."""
        if self._running.end(host) and self._board is not None and host in self._shown:
            self.tick(self._running.drawn(self._clock()))

    def tick(self, lines: Mapping[str, str]) -> None:
        """Draw these lines, and take the others of ours off."""
        if self._board is None:
            return
        with self._quiet:
            gone = self._shown - set(lines)
            if lines or gone:
                self._shown = set(lines)
                # A terminal that is gone ends no run.
                with suppress(OSError):
                    self._board.update({**dict.fromkeys(gone, ""), **lines})

    def _run(self) -> None:
        while not self._done.wait(POLL_S):
            now = self._clock()
            if self._board is not None:
                self.tick(self._running.drawn(now))
            else:
                for text in self._running.due(now):
                    self._say(text)
