"""Room on a host's filesystems, counted before a byte is written; one worker at a time in a store."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple


class Need(NamedTuple):
    """Bytes to be written below a directory, and what for."""

    directory: str
    size: int
    what: str


class BusyError(Exception):
    """Another run held the lock for the whole of the waiting time; the text names it."""


def existing(directory: str) -> str:
    """The nearest directory above that exists already."""
    while not os.path.isdir(directory):
        directory = os.path.dirname(directory) or "/"
    return directory


def free(directory: str) -> int:
    """Bytes that may still be written on the filesystem of a directory (which need not exist yet)."""
    state = os.statvfs(existing(directory))
    return state.f_bavail * state.f_frsize


def shortage(needs: List[Need], reserve: int) -> Optional[str]:
    """Why the needs do not fit their filesystems, `reserve` bytes staying free; None if they do."""
    systems: Dict[int, List[Need]] = {}
    for need in needs:
        systems.setdefault(os.stat(existing(need.directory)).st_dev, []).append(need)
    for group in systems.values():
        size, room = sum(need.size for need in group), free(group[0].directory)
        if size and size + reserve > room:
            return (
                "not enough room in %s: %s needed for %s, %s to stay free, %s free now. Free %s there, "
                "or set box_root_dir to a larger filesystem"
                % (
                    existing(group[0].directory),
                    human(size),
                    ", ".join(need.what for need in group if need.size),
                    human(reserve),
                    human(room),
                    human(size + reserve - room),
                )
            )
    return None


def human(size: float) -> str:
    """Bytes in the decimal units that disks are sold in."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return "%.1f %s" % (size / scale, unit)
    return "%d bytes" % size


@contextlib.contextmanager
def alone(path: str, waiting: Callable[[str], None], timeout: float) -> Iterator[None]:
    """Hold the lock at `path`; waits for another run at most `timeout` seconds. Raises BusyError.

    waiting: told, while it waits, who has the lock.
    """
    os.makedirs(os.path.dirname(path), exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        until = time.monotonic() + timeout
        while not _taken(descriptor):
            holder = _holder(descriptor)
            if time.monotonic() > until:
                raise BusyError("%s has worked on it for more than %d s" % (holder, timeout))
            waiting(holder)
            time.sleep(1)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, b"%d" % os.getpid(), 0)
        yield
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(descriptor: int) -> str:
    text = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
    return "another run (process %s)" % text if text else "another run"


def disk_use(directory: str) -> Tuple[int, Dict[str, int]]:
    """Bytes written below a directory, in all and by relative name; a sparse file counts what it holds."""
    sizes: Dict[str, int] = {}
    for place, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(place, name)
            with contextlib.suppress(FileNotFoundError):
                state = os.lstat(path)
                sizes[os.path.relpath(path, directory)] = min(state.st_size, state.st_blocks * 512)
    return sum(sizes.values()), sizes
