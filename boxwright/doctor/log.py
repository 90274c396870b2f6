"""A log of any size, as bytes: searched as a whole, taken apart only around what was found."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass

from boxwright.facts.parsers.log_lines import Line, parse

#: Longest piece of a line that is looked at, in bytes to either side of a find.
REACH = 4096
#: Finds of one text after which it is not looked for any further.
MOST_FINDS = 2000
#: Places whose text is that of an engine's starts.
OF_A_START = frozenset(("engine", "unit", "hub"))
#: How a start begins, the surest mark first: as systemd tells it, vLLM, SGLang.
STARTS = (
    re.compile(rb"Starting (?:boxwright-[\w.-]{1,80} - )?Boxwright deployment "),
    re.compile(rb"vLLM (?:API )?server version \d"),
    re.compile(rb"server_args=ServerArgs\("),
)
#: What an engine says once it serves, and what tells that a start came to an end.
SERVING = (b"Application startup complete", b"The server is fired up and ready to roll")
ENDED = (
    b"Traceback (most recent call last)",
    b"Main process exited",
    b"docker: ",
    b": error: ",
    b"Failed with result",
)
_MARKS = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


@dataclass(frozen=True)
class Place:
    """A line in a log, by its bytes."""

    start: int
    end: int


class Log:
    """One text. kinds: the places (see signature.PLACES) it comes from; none: it may be anything."""

    def __init__(self, name: str, data: bytes, *kinds: str) -> None:
        self.name = name
        self.kinds = frozenset(kinds)
        for mark, encoding in _MARKS:
            if data.startswith(mark):
                data = data[len(mark) :].decode(encoding, "replace").encode("utf-8")
        self.data = data.removeprefix(codecs.BOM_UTF8)
        self._counted = (0, 1)

    def finds(self, text: bytes) -> Iterator[Place]:
        """The lines that hold a text, each once, from the first on; see MOST_FINDS."""
        place, count = self.data.find(text), 0
        while place >= 0 and count < MOST_FINDS:
            line = self.line_at(place)
            yield line
            place, count = self.data.find(text, max(line.end, place + len(text))), count + 1

    def line_at(self, place: int) -> Place:
        """The line around a byte. A carriage return ends a line too: progress bars rewrite theirs."""
        low, high = max(0, place - REACH), min(len(self.data), place + REACH)
        start = max(self.data.rfind(b"\n", low, place), self.data.rfind(b"\r", low, place)) + 1 or low
        ends = [
            end
            for end in (self.data.find(b"\n", place, high), self.data.find(b"\r", place, high))
            if end >= 0
        ]
        return Place(start, min(ends, default=high))

    def number(self, place: int) -> int:
        """The number, from 1, of the line that a byte is in."""
        known, number = self._counted
        if place < known:
            known, number = 0, 1
        number += self.data.count(b"\n", known, place)
        self._counted = (place, number)
        return number

    def text(self, place: Place) -> Line:
        """A line without its prefixes."""
        return parse(self.data[place.start : place.end].decode("utf-8", "replace"))

    def lines(self, start: int, most: int, most_bytes: int = 8 << 20) -> list[tuple[int, Line]]:
        """Up to `most` lines from the line around byte `start` on, with their numbers."""
        start = self.line_at(start).start if self.data else 0
        piece = self.data[start : start + most_bytes]
        first = self.number(start)
        return [
            (first + number, parse(line[: 2 * REACH].decode("utf-8", "replace")))
            for number, line in enumerate(piece.split(b"\n", most)[:most])
        ]

    def last_lines(self, most: int) -> list[tuple[int, Line]]:
        """The last `most` lines."""
        place = len(self.data)
        for _ in range(most + 1):
            place = self.data.rfind(b"\n", 0, place)
            if place < 0:
                break
        return self.lines(place + 1, most + 1) if self.data else []

    def starts(self) -> list[int]:
        """Bytes at which an engine begins to start, in order."""
        for mark in STARTS:
            found = [self.line_at(one.start()).start for one in mark.finditer(self.data)]
            if found:
                return found
        return []

    def begin(self) -> int:
        """The byte from which on the start is told that counts: the last, or where that one goes on and the
        one before it has ended, that one. 0 in a log that is not of an engine.
        """
        if self.kinds and not self.kinds & OF_A_START:
            return 0
        starts = self.starts()
        if len(starts) > 1 and self.serving(starts[-1]) < 0 and not self._ended(starts[-1]):
            return starts[-2]
        return starts[-1] if starts else 0

    def serving(self, start: int) -> int:
        """Where, from `start` on, an engine says first that it serves; -1 where it does not."""
        places = [place for mark in SERVING if (place := self.data.find(mark, start)) >= 0]
        return min(places, default=-1)

    def _ended(self, start: int) -> bool:
        return any(self.data.find(mark, start) >= 0 for mark in ENDED)
