"""A file that arrives in pieces, in any order, and outlives the process that fetches it.

Beside `NAME.partial` lies `NAME.partial.map`: how many bytes of each piece are there. It is written after the
bytes, so that a killed process has lost nothing of what it wrote. Power that fails is another matter: of a
boot that is over, only what was flushed to the disk counts.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import threading
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ansible.module_utils import command

SUFFIX, MAP_SUFFIX = ".partial", ".partial.map"
MIB = 1024 * 1024
#: A file of at most so many bytes is one piece; larger ones have pieces between these sizes.
LEAST_PIECE, MOST_PIECE = 16 * MIB, 64 * MIB
#: The map: a line of JSON in so many bytes, then two numbers a piece: bytes written, bytes flushed.
HEADER = 512
NUMBERS = struct.Struct("<QQ")
BOOT_ID = "/proc/sys/kernel/random/boot_id"


class Span(NamedTuple):
    """Bytes of one piece that are missing: from `first` up to, not including, `end`."""

    piece: int
    first: int
    end: int


def piece_size(size: int) -> int:
    """Bytes of a piece of a file: the same on every host."""
    return max(LEAST_PIECE, min(MOST_PIECE, size // 16 // MIB * MIB))


class PartialFile:
    """The file at `path` while it is fetched. identity: what its bytes must be (a hash, or "")."""

    def __init__(self, path: str, size: int, identity: str) -> None:
        self.target, self.path, self.map_path = path, path + SUFFIX, path + MAP_SUFFIX
        self.size, self.piece = size, piece_size(size)
        self._identity = identity
        self._lock = threading.Lock()
        self._written: List[int] = []
        self._safe: List[int] = []
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._map = os.open(self.map_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._take_up()

    @property
    def pieces(self) -> int:
        """How many pieces it has."""
        return -(-self.size // self.piece)

    @property
    def written(self) -> int:
        """Bytes that are there."""
        return sum(self._written)

    @property
    def frontier(self) -> int:
        """Bytes that are there from the start on, without a gap."""
        known = _Pieces(self.size, self.piece, self._written)
        return known.available(0)

    def missing(self) -> List[Span]:
        """What is still to come, in order."""
        return [
            Span(number, number * self.piece + count, self._end(number))
            for number, count in enumerate(self._written)
            if number * self.piece + count < self._end(number)
        ]

    def left(self, piece: int) -> Span:
        """What is missing of a piece."""
        return Span(piece, piece * self.piece + self._written[piece], self._end(piece))

    def write(self, piece: int, data: memoryview) -> None:
        """Add bytes to a piece, which one thread alone fills. Raises OSError when the disk is full."""
        while len(data):
            # Once it is closed, its descriptor may be another file's.
            with self._lock:
                count = os.pwrite(self._file, data, piece * self.piece + self._written[piece])
                self._written[piece] += count
                self._note(piece)
            data = data[count:]

    def sweep(self, position: int, data: memoryview) -> None:
        """Take from a stream of the whole file, at `position`, what is missing."""
        while len(data):
            piece = min(position // self.piece, self.pieces - 1)
            part = data[: self._end(piece) - position]
            span = self.left(piece)
            skipped = span.first - position
            if 0 <= skipped < len(part) and span.first < span.end:
                self.write(piece, part[skipped:])
            position, data = position + len(part), data[len(part) :]

    def read(self, position: int, buffer: memoryview) -> int:
        """Read what is there into a buffer; how many bytes."""
        return os.preadv(self._file, [buffer], position)

    def settle(self) -> None:
        """Flush what is there, so that it survives power that fails."""
        with self._lock:
            if self._file < 0:
                return
            before, copy = list(self._written), os.dup(self._file)
        try:
            os.fdatasync(copy)
        finally:
            os.close(copy)
        with self._lock:
            # Bytes that were wrong were forgotten meanwhile: what was flushed of them does not count.
            if self._file >= 0 and all(now >= then for now, then in zip(self._written, before)):  # noqa: B905
                self._safe = before
                for piece in range(len(before)):
                    self._note(piece)
                os.fdatasync(self._map)

    def forget(self) -> None:
        """Its bytes are wrong: begin anew."""
        with self._lock:
            os.ftruncate(self._file, 0)
            self._begin()

    def finish(self) -> None:
        """It is whole and right: flush it and give it its name."""
        with self._lock:
            os.fsync(self._file)
            self._close()
            os.replace(self.path, self.target)
            os.unlink(self.map_path)

    def close(self) -> None:
        """Leave it for a later run."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        for descriptor in (self._file, self._map):
            if descriptor >= 0:
                os.close(descriptor)
        self._file = self._map = -1

    def _end(self, piece: int) -> int:
        return min((piece + 1) * self.piece, self.size)

    def _take_up(self) -> None:
        known = _load(self.map_path)
        fits = known and (known.size, known.piece, known.identity) == (self.size, self.piece, self._identity)
        if not known or not fits or os.fstat(self._file).st_size != self.size:
            os.ftruncate(self._file, 0)
            self._begin()
            return
        self._safe = known.safe
        self._written = known.written if known.boot == _boot() else list(known.safe)
        if known.boot != _boot():
            self._save()

    def _begin(self) -> None:
        os.ftruncate(self._file, self.size)
        self._written, self._safe = [0] * self.pieces, [0] * self.pieces
        self._save()

    def _save(self) -> None:
        header = {"size": self.size, "piece": self.piece, "identity": self._identity, "boot": _boot()}
        text = json.dumps(header).encode().ljust(HEADER)
        numbers = b"".join(map(NUMBERS.pack, self._written, self._safe))
        os.ftruncate(self._map, 0)
        os.pwrite(self._map, text + numbers, 0)

    def _note(self, piece: int) -> None:
        numbers = NUMBERS.pack(self._written[piece], self._safe[piece])
        os.pwrite(self._map, numbers, HEADER + piece * NUMBERS.size)


class _Pieces(NamedTuple):
    """Sizes, and how many bytes of each piece are there."""

    size: int
    piece: int
    written: List[int]

    def available(self, first: int) -> int:
        """Bytes that are there from `first` on, without a gap."""
        position = first
        while position < self.size:
            number = position // self.piece
            reached = number * self.piece + self.written[number]
            if reached <= position:
                break
            position = reached
            if position < min((number + 1) * self.piece, self.size):
                break
        return position - first


class _Known(NamedTuple):
    size: int
    piece: int
    identity: str
    boot: str
    written: List[int]
    safe: List[int]


def available(path: str, first: int) -> Tuple[int, int]:
    """Of the file at `path` that another process fetches: its size, and its bytes from `first` on.

    Raises FileNotFoundError when nobody fetches it.
    """
    known = _load(path + MAP_SUFFIX)
    if known is None:
        raise FileNotFoundError(path + MAP_SUFFIX)
    return known.size, _Pieces(known.size, known.piece, known.written).available(first)


def held(path: str) -> int:
    """Bytes of the file at `path` that an earlier run has brought."""
    known = _load(path + MAP_SUFFIX)
    return 0 if known is None else sum(known.written if known.boot == _boot() else known.safe)


def arrived(directory: str) -> Dict[str, int]:
    """Bytes that are there of each file below a directory, by its name, whole ones and those on their way."""
    found: Dict[str, int] = {}
    for place, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(place, name)
            relative = os.path.relpath(path, directory)
            if name.endswith(SUFFIX):
                found[relative[: -len(SUFFIX)]] = held(path[: -len(SUFFIX)])
            elif not name.endswith(MAP_SUFFIX):
                with contextlib.suppress(OSError):
                    found.setdefault(relative, os.path.getsize(path))
    return found


def _load(path: str) -> Optional[_Known]:
    try:
        with open(path, "rb") as stream:
            header: Dict[str, Any] = json.loads(stream.read(HEADER))
            numbers = [NUMBERS.unpack(each) for each in iter(lambda: stream.read(NUMBERS.size), b"")]
        size, piece = int(header["size"]), int(header["piece"])
        if piece <= 0 or len(numbers) != -(-size // piece):
            return None
        written, safe = [one for one, _ in numbers], [two for _, two in numbers]
        return _Known(size, piece, str(header["identity"]), str(header["boot"]), written, safe)
    except (OSError, ValueError, KeyError, TypeError, struct.error):
        return None


def _boot() -> str:
    return (command.read(BOOT_ID) or "").strip()
