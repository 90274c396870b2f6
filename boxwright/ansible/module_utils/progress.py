"""How far a long piece of work has come: a small file that the controller reads while it waits."""

from __future__ import annotations

import atexit
import json
import os
import time
from typing import Optional


class Progress:
    """Tells how far the work is, at most twice a second; a path of None tells nobody."""

    def __init__(self, path: Optional[str]) -> None:
        self.path = path
        self._last = 0.0
        self._stage = ""
        atexit.register(self._forget)

    def update(
        self, stage: str, done: Optional[float] = None, total: Optional[float] = None, unit: str = ""
    ) -> None:
        """Say the stage and, where it can be counted, how much of how much (unit: "bytes", "files", …)."""
        now = time.monotonic()
        if not self.path or (stage == self._stage and now - self._last < 0.5):
            return
        self._last, self._stage = now, stage
        temporary = self.path + ".new"
        try:
            with open(temporary, "w", encoding="utf-8") as stream:
                json.dump({"stage": stage, "done": done, "total": total, "unit": unit}, stream)
            os.replace(temporary, self.path)
        except OSError:
            # Nobody is told; the work itself finds out what it needs of a full disk.
            return

    def _forget(self) -> None:
        """The work is over: leave no file behind."""
        if self.path and os.path.exists(self.path):
            os.unlink(self.path)
