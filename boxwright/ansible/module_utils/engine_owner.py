"""What the user that an engine runs as may read, and where it may write."""

from __future__ import annotations

import os
import stat
from typing import Iterator, Optional


def unreadable(directory: str, user: str) -> Optional[str]:
    """What a user, `UID:GID`, may not read of a directory's files; None when it may read them all.

    The directories above it do not count: a container gets it by itself.
    """
    uid, gid = (int(part) for part in user.split(":"))
    for path in _all(directory):
        try:
            seen = os.stat(path)
        except FileNotFoundError:
            continue  # a link into nowhere is missed by the engine, whoever it is
        wanted = 0o5 if stat.S_ISDIR(seen.st_mode) else 0o4
        place = 6 if seen.st_uid == uid else 3 if seen.st_gid == gid else 0
        if (seen.st_mode >> place) & wanted != wanted:
            return path
    return None


def make_cache(directory: str, user: Optional[str]) -> None:
    """Have a directory that the engine alone writes. user: `UID:GID`; None for root."""
    os.makedirs(directory, mode=0o700, exist_ok=True)
    if user:
        uid, gid = (int(part) for part in user.split(":"))
        seen = os.stat(directory)
        if (seen.st_uid, seen.st_gid) != (uid, gid):
            os.chown(directory, uid, gid)


def _all(directory: str) -> Iterator[str]:
    yield directory
    for parent, directories, files in os.walk(directory):
        for name in [*directories, *files]:
            yield os.path.join(parent, name)
