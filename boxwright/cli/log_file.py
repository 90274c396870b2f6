"""Reading a log that somebody names: a file, packed or not, a pipe, or standard input."""

from __future__ import annotations

import os
import select
import stat
import sys
from pathlib import Path
from typing import BinaryIO

from boxwright.cli.paths import named
from boxwright.doctor import decoding
from boxwright.doctor.decoding import LARGEST
from boxwright.errors import EXIT_BAD_INPUT, UserError
from boxwright.texts import printable

STANDARD_INPUT = "standard input"
#: Seconds that a pipe without a writer is waited for.
PIPE_WAIT_S = 30.0
_CHUNK = 1 << 20


def name_of(word: str) -> str:
    """What a log is called in messages."""
    return STANDARD_INPUT if word == "-" else printable(word) or "--log"


def read(word: str) -> bytes:
    """The bytes of a log (`-`: standard input), of a long one the end. Raises UserError if it is none."""
    try:
        data = _end_of(sys.stdin.buffer) if word == "-" else _read(named(word))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise _refused(word, why or str(error), "give a file, or - and the log on standard input") from error
    problem = decoding.why_not(data)
    if problem is not None:
        raise _refused(word, problem[0], problem[1].replace("FILE", word if word != "-" else "FILE"))
    return data


def _read(path: Path) -> bytes:
    kind = path.stat().st_mode
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(0, "it is a directory; name a log in it")
    if stat.S_ISFIFO(kind):
        return _read_pipe(path)
    if not stat.S_ISREG(kind):
        raise OSError(0, "it is neither a file nor a pipe")
    with path.open("rb") as stream:
        if decoding.packed(stream.read(8)):
            stream.seek(0)
            return stream.read(LARGEST)
        # Whole groups of bytes: a log in UTF-16 or UTF-32 is cut between two letters.
        stream.seek(max(0, (stream.seek(0, 2) - LARGEST) // 4 * 4))
        return stream.read(LARGEST + 4)


def _read_pipe(path: Path) -> bytes:
    """What is written into a pipe, until its writer is done."""
    # Opened so, a pipe is there at once, with a writer or without.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb", buffering=0) as stream:
        waiting = select.poll()
        waiting.register(handle, select.POLLIN | select.POLLHUP)
        if not waiting.poll(PIPE_WAIT_S * 1000):
            raise OSError(0, f"it is a pipe, and nothing wrote into it for {PIPE_WAIT_S:.0f} s")
        os.set_blocking(handle, True)
        return _end_of(stream)


def _end_of(stream: BinaryIO) -> bytes:
    """All that comes, or its end where that is more than is read."""
    kept = bytearray()
    while piece := stream.read(_CHUNK):
        kept += piece
        if len(kept) > 2 * LARGEST:
            del kept[: (len(kept) - LARGEST) // 4 * 4]
    return bytes(kept[max(0, (len(kept) - LARGEST) // 4 * 4) :])


def _refused(word: str, why: str, way: str) -> UserError:
    return UserError(
        "the log cannot be read",
        where=name_of(word),
        why=printable(why),
        status=EXIT_BAD_INPUT,
        ways_out=(way,),
    )
