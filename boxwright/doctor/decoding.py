"""From the bytes of a log file to its text: unpacked, as UTF-8; and why it may hold none."""

from __future__ import annotations

import bz2
import codecs
import lzma
import zlib
from collections.abc import Callable
from typing import Any

#: Most bytes of text that are kept: of a longer one the end.
LARGEST = 256 << 20
#: Most bytes that are unpacked: a small file can hold any number.
MOST_UNPACKED = 4 * LARGEST
_CHUNK = 1 << 20
#: How packed files begin, and what unpacks one stream.
_PACKED: tuple[tuple[bytes, Callable[[], Any]], ...] = (
    (b"\x1f\x8b", lambda: zlib.decompressobj(31)),
    (b"BZh", bz2.BZ2Decompressor),
    (b"\xfd7zXZ\x00", lzma.LZMADecompressor),
)
#: The longer mark first: UTF-32's begins as UTF-16's does.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
#: Where in each group of bytes the zeros of plain letters are, by encoding.
_ZEROS = {
    "utf-16-le": (2, (1,)),
    "utf-16-be": (2, (0,)),
    "utf-32-le": (4, (1, 2, 3)),
    "utf-32-be": (4, (0, 1, 2)),
}
#: Bytes that a packed file of nothing may have.
_EMPTY_PACKED = 100
_SAMPLE = 1 << 16
#: Share of bytes that no text has, from which on it is none. Packed or random data have about 0.1.
_BINARY = 0.04
_NEVER_TEXT = bytes(set(range(1, 32)) - set(b"\t\n\r\f\b\x1b\x07") | {127})
#: Files that hold a log and are none, by how they begin, with the way to it.
_KINDS = (
    (b"LPKSHHRH", "it is a journal of systemd", "journalctl --file FILE writes it as text"),
    (b"\x28\xb5\x2f\xfd", "it is packed with zstd", "zstd -dc FILE, and its output on standard input"),
    (b"PK\x03\x04", "it is a zip archive", "unzip it, and give the log that is in it"),
)


def packed(data: bytes) -> bool:
    """Whether data begin as a packed file does."""
    return any(data.startswith(mark) for mark, _ in _PACKED)


def text_of(data: bytes) -> bytes:
    """The text, as UTF-8 and without zeros (a box that lost power leaves blocks of them in its logs)."""
    for mark, opener in _PACKED:
        if data.startswith(mark):
            data = _unpacked(data, mark, opener)
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _decoded(data[len(mark) :], encoding)
    guessed = _encoding(data)
    if guessed:
        return _decoded(data, guessed)
    return data.removeprefix(codecs.BOM_UTF8).replace(b"\x00", b"")


def why_not(data: bytes) -> tuple[str, str] | None:
    """Why data hold no text of a log, and the way out; None where they do."""
    for mark, what, way in _KINDS:
        if data.startswith(mark):
            return what, way
    text = text_of(data)
    if not text.strip():
        why = "it holds nothing but zeros" if b"\0" in data and not packed(data) else "it is empty"
        if packed(data) and len(data) > _EMPTY_PACKED:
            why = "it is packed, and too damaged to be unpacked"
        return why, "engines write to standard error: docker logs NAME 2>&1, or journalctl -t boxwright-NAME"
    middle = max(0, len(text) // 2 - _SAMPLE // 2)
    for sample in (text[:_SAMPLE], text[middle : middle + _SAMPLE], text[-_SAMPLE:]):
        if len(sample) - len(sample.translate(None, _NEVER_TEXT)) > _BINARY * len(sample):
            return "it is no text", "give the file that the engine's lines were written to"
    return None


def _unpacked(data: bytes, mark: bytes, opener: Callable[[], Any]) -> bytes:
    """What packed data hold, as far as they can be read: one that was cut off is read up to there."""
    kept, size, place = bytearray(), 0, 0
    while data.startswith(mark, place) and size < MOST_UNPACKED:
        stream = opener()
        try:
            while place < len(data) and not stream.eof and size < MOST_UNPACKED:
                piece = stream.decompress(data[place : place + _CHUNK])
                place += _CHUNK
                size += len(piece)
                kept += piece
                del kept[: max(0, len(kept) - LARGEST)]
        except (zlib.error, OSError, lzma.LZMAError, EOFError):
            break
        place = min(place, len(data)) - len(stream.unused_data)
    return bytes(kept)


def _encoding(data: bytes) -> str | None:
    """The encoding of text without a mark, by where its zeros are."""
    sample = data[:4096]
    for encoding, (width, zeros) in reversed(_ZEROS.items()):
        whole = len(sample) // width * width
        if whole < 2 * width:
            continue
        shares = [sample[place:whole:width].count(0) / (whole / width) for place in range(width)]
        if all((share > 0.6) if place in zeros else (share < 0.1) for place, share in enumerate(shares)):
            return encoding
    return None


def _decoded(data: bytes, encoding: str) -> bytes:
    return data.decode(encoding, "replace").encode("utf-8", "replace").replace(b"\x00", b"")
