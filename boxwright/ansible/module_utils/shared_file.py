"""Reading a configuration file that belongs to others too, so that nothing is lost in rewriting it."""

from __future__ import annotations

import errno
import os
import stat
from typing import NamedTuple, Optional

#: Longest configuration that is read, in bytes.
LONGEST = 4 << 20


class SharedFileError(Exception):
    """The file is there and cannot be taken as it is; the text says which, why and what to do."""


class SharedFile(NamedTuple):
    """A file as it stands. path: what links lead to, which is what gets rewritten; text: None without one."""

    path: str
    text: Optional[str]


def look(path: str) -> SharedFile:
    """Read a file that a person, or another tool, may have made. Raises SharedFileError.

    A symbolic link stays one, and the file behind it is read. What is no regular file, or no UTF-8, is not
    guessed at: written back, it would not be what it was.
    """
    try:
        real = os.path.realpath(path)
        try:
            state = os.stat(path)
        except FileNotFoundError:
            if not os.path.islink(path):
                return SharedFile(real, None)
            raise SharedFileError(
                "%s is a symbolic link to %s, which is not there (not mounted?): bring that back, or remove "
                "the link" % (path, real)
            ) from None
        if stat.S_ISDIR(state.st_mode):
            raise SharedFileError(
                "%s is a directory, not a file (a bind mount of a file that was not there makes one): remove "
                "it with rmdir %s" % (path, path)
            )
        if not stat.S_ISREG(state.st_mode):
            raise SharedFileError("%s is no regular file: put one in its place, or remove it" % path)
        if state.st_size > LONGEST:
            raise SharedFileError("%s has %d bytes: no configuration is that long" % (path, state.st_size))
        with open(real, "rb") as stream:
            body = stream.read()
    except OSError as error:
        raise SharedFileError("%s cannot be read: %s" % (path, reason(error))) from error
    try:
        return SharedFile(real, body.decode("utf-8"))
    except UnicodeDecodeError as error:
        kind = "UTF-16" if body[:2] in (b"\xff\xfe", b"\xfe\xff") else "not UTF-8"
        raise SharedFileError(
            "%s is %s (byte %d): save it as UTF-8; it was left as it is" % (path, kind, error.start)
        ) from error


def reason(error: OSError) -> str:
    """Why the system refused, with what that mostly means for a file of root's."""
    hints = {
        errno.EROFS: "its filesystem is mounted read-only",
        errno.EPERM: "it may be immutable (lsattr shows an i; chattr -i takes it off)",
        errno.EBUSY: "it is a mount of its own",
        errno.ENOSPC: "there is no room on its filesystem",
        errno.ELOOP: "its symbolic links lead in a circle",
    }
    hint = hints.get(error.errno or 0)
    return "%s%s" % (error.strerror or error, ": " + hint if hint else "")
