"""What a file is, in words that differ when it does: how receipts know what they watch.

Nothing but the standard library: the exporter of a box's metrics runs it too.
"""

from __future__ import annotations

import hashlib
import os
import stat

#: Files up to this length are compared by what they hold, longer ones by size and time, in bytes.
LONGEST_HASHED = 1 << 20


def state(path: str) -> str:
    """A file's owner, mode and contents, or where a link points; empty for a directory and what is gone."""
    try:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            return "-> " + os.readlink(path)
        if not stat.S_ISREG(found.st_mode):
            return ""
        if found.st_size > LONGEST_HASHED:
            what = "%d bytes of %d" % (found.st_size, found.st_mtime_ns)
        else:
            with open(path, "rb") as stream:
                what = hashlib.sha256(stream.read()).hexdigest()
    except OSError as error:
        return "unreadable: %s" % (error.strerror or error)
    return "%04o %d:%d %s" % (stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid, what)
