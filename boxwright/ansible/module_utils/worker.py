"""A helper program that works for minutes or hours and tells how far it is, in lines of JSON."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import threading
import time
from types import TracebackType
from typing import Any, Deque, Dict, Iterator, List, Optional, Type

POLL_S = 1.0


class Worker:
    """The running program; leaving the `with` block ends it. env: all of its own; secret: never quoted."""

    def __init__(self, argv: List[str], env: Dict[str, str], secret: str = "") -> None:
        self._secret = secret
        self._complaints: Deque[str] = collections.deque(maxlen=40)
        self._chatter: Deque[str] = collections.deque(maxlen=10)
        self._events: "queue.Queue[Optional[Dict[str, Any]]]" = queue.Queue()
        # A session of its own: what it starts ends with it. And it ends with this process, even when that is
        # killed: a helper left alone would work on in a place that the next run takes for free.
        guard = shutil.which("setpriv")
        self._process = subprocess.Popen(
            [guard, "--pdeathsig", "KILL", "--", *argv] if guard else argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            start_new_session=True,
            encoding="utf-8",
            errors="replace",
        )
        self._readers = [
            threading.Thread(target=self._read_events, daemon=True),
            threading.Thread(target=self._read_complaints, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def __enter__(self) -> "Worker":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.stop()

    def tell(self, line: str) -> None:
        """Write one line to the program's standard input."""
        assert self._process.stdin
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()

    def events(self) -> Iterator[Optional[Dict[str, Any]]]:
        """What the program says, until it ends; None about every second in between."""
        while True:
            try:
                event = self._events.get(timeout=POLL_S)
            except queue.Empty:
                yield None
                continue
            if event is None:
                return
            yield event

    def end(self, timeout: float = 30) -> int:
        """Wait for the program, which has said all it had to; its exit status (negative: the signal)."""
        try:
            status = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.stop()
            status = self._process.returncode
        for reader in self._readers:
            reader.join(timeout=5)
        return status

    def stop(self) -> None:
        """End the program and what it started; politely first."""
        for wish in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, wish)
            until = time.monotonic() + 10
            while self._process.poll() is None and time.monotonic() < until:
                time.sleep(0.05)
            if self._process.returncode is not None:
                break
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            with contextlib.suppress(OSError):
                if stream:
                    stream.close()

    @property
    def complaint(self) -> str:
        """The end of what it wrote on its error stream (or else beside its events), without the secret."""
        return hide("\n".join(self._complaints or self._chatter), self._secret)

    def _read_events(self) -> None:
        assert self._process.stdout
        with contextlib.suppress(ValueError):
            for line in self._process.stdout:
                try:
                    event = json.loads(line)
                except ValueError:
                    self._chatter.append(line.rstrip())
                    continue
                if isinstance(event, dict):
                    self._events.put(event)
        self._events.put(None)

    def _read_complaints(self) -> None:
        assert self._process.stderr
        with contextlib.suppress(ValueError):
            for line in self._process.stderr:
                # A progress bar redraws one line; its last state is enough.
                self._complaints.append(line.rstrip().rpartition("\r")[2])


def hide(text: str, secret: str) -> str:
    """The text without the secret."""
    return text.replace(secret, "***") if secret else text


def environment(**extra: str) -> Dict[str, str]:
    """The environment of a helper: this one's, without what would lead its Python elsewhere; C locale."""
    kept = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith(("PYTHON", "HF_", "VIRTUAL_ENV"))
    }
    return dict(kept, LC_ALL="C.UTF-8", PYTHONUNBUFFERED="1", **extra)
