"""One run at a time on a box: a second one on this machine waits for the first, and says for whom."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

from boxwright.cli.ssh_route import route, ssh_words
from boxwright.errors import UserError

#: Seconds for which a run waits for another one: a first run that fetches tens of gigabytes takes this long.
PATIENCE_S = 3600
POLL_S = 1.0


@contextmanager
def turn(
    boxes: Mapping[str, str],
    say: Callable[[str], None],
    *,
    directory: Path | None = None,
    patience_s: float = PATIENCE_S,
) -> Iterator[None]:
    """Have these boxes for oneself; the lock goes with the process, however it ends.

    boxes: name -> address. Two runs on one box would reboot it and restart its engine under each other.
    Raises UserError when another run has a box for longer than `patience_s`, or where no lock can be kept.
    """
    place = directory or _directory()
    with ExitStack() as held:
        # Always in the same order, so that two runs never wait for each other.
        for name in sorted(boxes):
            path = place / f"{hashlib.sha256(boxes[name].encode()).hexdigest()[:16]}.lock"
            held.enter_context(_lock(path, name, say, patience_s))
        yield


def addresses(names: Sequence[str], variables: Callable[[str], Mapping[str, object]]) -> dict[str, str]:
    """What tells boxes apart, whatever they are called in an inventory: where SSH goes, and through what."""
    found = {}
    for name in names:
        words = ssh_words(name, variables(name))
        to = route(words)
        found[name] = f"{to.host} {to.port} {to.jump}" if to else shlex.join(words)
    return found


def _directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "boxwright" / "turns"


@contextmanager
def _lock(path: Path, name: str, say: Callable[[str], None], patience_s: float) -> Iterator[None]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = path.open("a+", encoding="utf-8")
    except OSError as error:
        raise UserError(
            "no lock can be kept against a second run on the same box", where=str(path), why=error.strerror
        ) from error
    with handle:
        _wait(handle, name, say, patience_s)
        handle.truncate(0)
        handle.write(f"process {os.getpid()}, since {time.strftime('%H:%M:%S')}")
        handle.flush()
        yield


def _wait(handle: TextIO, name: str, say: Callable[[str], None], patience_s: float) -> None:
    until, told = time.monotonic() + patience_s, ""
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            handle.seek(0)
            holder = handle.read().strip() or "just begun"
        if time.monotonic() >= until:
            raise UserError(
                f"another run works on it ({holder}), still after {patience_s:.0f} s of waiting",
                where=name,
                why="nothing was done",
                ways_out=("wait for it to end, and run again", "end that process, if it hangs"),
            )
        if holder != told:
            say(f"{name}: another run works on it ({holder}); waiting for its end")
            told = holder
        time.sleep(POLL_S)
