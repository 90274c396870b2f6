"""What a program writes on its standard error: passed on as it comes, and its end kept."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

#: Bytes that are kept, from the end.
MOST = 64 << 10
#: Seconds for the last words after the program has ended; what it started may keep the pipe open.
PATIENCE_S = 5
STDERR = 2


class Overheard:
    """sink: the file descriptor that the program gets for its standard error."""

    def __init__(self, sink: int) -> None:
        self.sink = sink
        self._kept = bytearray()

    def text(self) -> str:
        """What it has said, or the end of it."""
        return self._kept.decode("utf-8", "replace").strip()

    def hear(self, source: int, *, silent: bool) -> None:
        """Read until nobody can write any more."""
        while True:
            try:
                chunk = os.read(source, 1 << 16)
            except OSError:
                return
            if not chunk:
                return
            self._kept += chunk
            del self._kept[:-MOST]
            if not silent:
                with suppress(OSError):
                    os.write(STDERR, chunk)


@contextmanager
def overheard(*, silent: bool) -> Iterator[Overheard]:
    """A standard error for a program that runs within; silent: nothing is passed on."""
    source, sink = os.pipe()
    ears = Overheard(sink)
    reader = threading.Thread(target=ears.hear, args=(source,), kwargs={"silent": silent}, daemon=True)
    reader.start()
    try:
        yield ears
    finally:
        os.close(sink)
        reader.join(timeout=PATIENCE_S)
        if not reader.is_alive():
            os.close(source)
