"""What a fetch may take, what it took, and when a byte is expected."""

from __future__ import annotations

import threading
import time
from typing import Dict, List, NamedTuple


class Limits(NamedTuple):
    """workers: connections; attempts: how often wrong bytes are fetched; stall_s: patience without a byte;
    bytes_per_s: 0 for no limit.
    """

    workers: int
    stall_s: float
    attempts: int = 3
    bytes_per_s: int = 0


class Meter:
    """Bytes that came, from which source; how long the run has been told to wait."""

    def __init__(self, limits: Limits) -> None:
        self.came: Dict[str, int] = {}
        self.notes: List[str] = []
        self.moved = time.monotonic()
        self._limit, self._due = limits.bytes_per_s, 0.0
        self._lock = threading.Lock()

    def count(self, name: str, count: int) -> None:
        """Count bytes; slows down to the limit."""
        with self._lock:
            self.came[name] = self.came.get(name, 0) + count
            self.moved = max(self.moved, time.monotonic())
            if not self._limit:
                return
            self._due = max(self._due, time.monotonic()) + count / self._limit
            pause = self._due - time.monotonic()
        if pause > 0:
            time.sleep(pause)

    @property
    def waits(self) -> bool:
        """Whether no byte is expected just now."""
        return self.moved > time.monotonic()

    def patient(self, seconds: float) -> None:
        """No byte is expected for so long."""
        with self._lock:
            self.moved = max(self.moved, time.monotonic() + seconds)

    def resume(self) -> None:
        """From now on bytes are expected."""
        with self._lock:
            self.moved = time.monotonic()

    def note(self, text: str) -> None:
        """Something a person should know of afterwards, once."""
        with self._lock:
            if text not in self.notes:
                self.notes.append(text)
