"""A log of any size, as bytes: searched as a whole, taken apart only around what was found."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from boxwright.doctor.decoding import text_of
from boxwright.doctor.speakers import Speakers
from boxwright.doctor.unwrapping import unwrapped
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
#: How only an engine's processes call themselves, and that systemd speaks of a unit of Boxwright's.
_PROCESSES = (b"(EngineCore", b"(APIServer", b"(Worker")
_PROCESS = re.compile(r"(?:EngineCore|APIServer|Worker)")
_OWN_UNIT = re.compile(rb"Boxwright deployment |boxwright-[\w.-]{1,80}(?:\.service: |\[\d{1,10}\]: )")
#: What an engine says once it serves, and what tells that a start came to an end.
SERVING = (b"Application startup complete", b"The server is fired up and ready to roll")
ENDED = (
    b"Traceback (most recent call last)",
    b"Main process exited",
    b"docker: ",
    b": error: ",
    b"Failed with result",
)
#: Farthest, in bytes, that the beginning of a line is looked for before a find: an engine that logs requests
#: writes whole prompts into one line, and says only before them what that line is.
LONGEST_LINE = 1 << 20
#: Bytes at the beginning of such a line that are shown with what was found in it.
_HEAD = 512


@dataclass(frozen=True)
class Place:
    """A line in a log, by its bytes. begin: where it begins, should that be farther off than REACH."""

    start: int
    end: int
    begin: int


class Log:
    """One text. kinds: the places (see signature.PLACES) it comes from; none: it may be anything."""

    def __init__(self, name: str, data: bytes, *kinds: str) -> None:
        self.name = name
        self.kinds = frozenset(kinds)
        self.data, self._numbers = unwrapped(text_of(data))
        self._counted = (0, 1)
        self._begun = (0, 0)

    def finds(self, text: bytes, start: int = 0) -> Iterator[Place]:
        """The lines that hold a text, each once, from byte `start` on; see MOST_FINDS."""
        place, count = self.data.find(text, start), 0
        while place >= 0 and count < MOST_FINDS:
            line = self.line_at(place)
            yield line
            place, count = self.data.find(text, max(line.end, place + len(text))), count + 1

    def line_at(self, place: int) -> Place:
        """The line around a byte. A carriage return ends a line too: progress bars rewrite theirs."""
        low, high = max(0, place - REACH), min(len(self.data), place + REACH)
        begin = self._begin_of(place)
        ends = [
            end
            for end in (self.data.find(b"\n", place, high), self.data.find(b"\r", place, high))
            if end >= 0
        ]
        return Place(max(begin, low), min(ends, default=high), begin)

    def _begin_of(self, place: int) -> int:
        """Where a line begins. What was found last is kept: finds in a long line come one after the other."""
        known, searched = self._begun
        low = searched if known <= searched <= place else max(0, place - LONGEST_LINE)
        found = max(self.data.rfind(b"\n", low, place), self.data.rfind(b"\r", low, place)) + 1
        begin = found or (known if low == searched else low)
        self._begun = (begin, place)
        return begin

    def number(self, place: int) -> int:
        """The number, from 1, of the line that a byte is in."""
        known, number = self._counted
        if place < known:
            known, number = 0, 1
        number += self.data.count(b"\n", known, place)
        self._counted = (place, number)
        return self._told(number)

    def _told(self, number: int) -> int:
        """The number that a line has in what was given."""
        if self._numbers is None or number > len(self._numbers):
            return number
        return self._numbers[number - 1]

    def text(self, place: Place) -> Line:
        """A line without its prefixes; of one that is very long its beginning and what is around the find."""
        said = self.data[place.start : place.end].decode("utf-8", "replace")
        if place.begin == place.start:
            return parse(said)
        head = self.data[place.begin : min(place.begin + _HEAD, place.start)].decode("utf-8", "replace")
        return parse(f"{head} … {said}")

    def lines(self, start: int, most: int, most_bytes: int = 8 << 20) -> list[tuple[int, Line]]:
        """Up to `most` lines from the line around byte `start` on, with their numbers."""
        start = self.line_at(start).start if self.data else 0
        piece = self.data[start : start + most_bytes]
        self.number(start)
        first = self._counted[1]
        return [
            (self._told(number), parse(line[: 2 * REACH].decode("utf-8", "replace")))
            for number, line in enumerate(piece.split(b"\n", most)[:most], first)
        ]

    def after(self, start: int, most: int) -> int:
        """The byte behind `most` lines from the line around byte `start` on; -1 where the log ends before."""
        place = self.line_at(start).start
        for _ in range(most):
            place = self.data.find(b"\n", place) + 1
            if not place:
                return -1
        return place

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
        return any(
            not self.speakers.other(self.text(place)) for mark in ENDED for place in self.finds(mark, start)
        )

    @cached_property
    def speakers(self) -> Speakers:
        """Who speaks in it. In a log whose place is known, all lines are of that place."""
        if self.kinds:
            return Speakers(named=False)
        starts = [self.text(self.line_at(one.start())) for mark in STARTS for one in mark.finditer(self.data)]
        said = [self.text(place) for mark in _PROCESSES for place in self.finds(mark)]
        return Speakers(
            [*starts, *(line for line in said if _PROCESS.match(line.process))],
            own_unit=_OWN_UNIT.search(self.data) is not None,
        )
