"""Ctrl-C where several boxes are worked on at once: the main thread alone gets it, and hands it on."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

#: Seconds for a program to end by itself, as the standard library leaves it after Ctrl-C.
GRACE_S = 0.25


class Interrupts:
    """Hands each Ctrl-C on to every thread, once: what a thread does about it afterwards runs undisturbed."""

    def __init__(self) -> None:
        self._count, self._lock, self._seen = 0, threading.Lock(), threading.local()
        self._running: set[subprocess.Popen[str]] = set()

    def begin(self) -> None:
        """This thread begins its work: what came before does not concern it."""
        self._seen.count = self._count

    def stop(self) -> None:
        """Ctrl-C came: have every thread know, and end what they wait for."""
        with self._lock:
            self._count += 1
            running = list(self._running)
        for process in running:
            with suppress(OSError):
                process.send_signal(signal.SIGINT)
        for process in running:
            try:
                process.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()

    def check(self) -> None:
        """Raise KeyboardInterrupt where Ctrl-C came since this thread last heard of one."""
        if getattr(self._seen, "count", self._count) < self._count:
            self.begin()
            raise KeyboardInterrupt

    @contextmanager
    def ending(self, process: subprocess.Popen[str]) -> Iterator[None]:
        """While the block waits for a program, Ctrl-C ends it. Raises KeyboardInterrupt then."""
        with self._lock:
            self._running.add(process)
            late = getattr(self._seen, "count", self._count) < self._count
        if late:
            process.kill()
        try:
            yield
        finally:
            with self._lock:
                self._running.discard(process)
        self.check()


#: Of this process.
interrupts = Interrupts()
