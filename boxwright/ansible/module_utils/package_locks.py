"""Locks of package managers: who holds one, and waiting for them to be free."""

from __future__ import annotations

import fcntl
import os
import struct
import time
from typing import Callable, Optional, Tuple

from ansible.module_utils.command import read


class LockTimeout(Exception):
    """Somebody else kept a package lock for the whole of the waiting time; the text names them."""


def lock_holder(path: str) -> Optional[int]:
    """The process that holds the lock at `path` (0: one of another PID namespace), or None if it is free."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        # struct flock of 64-bit Linux: type, whence, start, length, pid.
        asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0)
        kind, _, _, _, pid = struct.unpack("hhqqi4x", fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
        return None if kind == fcntl.F_UNLCK else max(int(pid), 0)
    finally:
        os.close(descriptor)


def holder_name(pid: int) -> str:
    """A process for a message: its command line and number."""
    words = (read("/proc/%d/cmdline" % pid) or "").replace("\0", " ").strip() if pid else ""
    return "%s (process %d)" % (words[:120], pid) if words else "a process that cannot be seen from here"


def wait_for_locks(
    timeout: float,
    locks: Tuple[str, ...],
    holder: Callable[[str], Optional[int]] = lock_holder,
) -> Optional[str]:
    """Wait until nobody holds one of the locks; who was waited for, or None. Raises LockTimeout."""
    waited_for, until = None, time.monotonic() + timeout
    while True:
        held = [(path, pid) for path, pid in ((path, holder(path)) for path in locks) if pid is not None]
        if not held:
            return waited_for
        path, pid = held[0]
        waited_for = holder_name(pid)
        if time.monotonic() >= until:
            raise LockTimeout("%s holds %s, still after %d s" % (waited_for, path, timeout))
        time.sleep(1)
