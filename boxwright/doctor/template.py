"""The texts that signatures look for: literal text with gaps, found in time linear in a line's length.

`max_num_seqs ({asked:int}) exceeds available Mamba cache blocks ({have:int})`: the literal parts must come in
this order; what stands between them is captured by name, or skipped where the braces are empty. A gap ends at
the first place where the next part begins, so nothing is tried twice, whatever a log holds. `{{` is a brace.
"""

from __future__ import annotations

import string
from dataclasses import dataclass

#: Longest value that is captured, in characters; a longer one is cut.
LONGEST_VALUE = 200
#: Places in one line at which a text is tried, where its first part occurs several times.
TRIES = 4
#: Shortest literal part that a text must have: a shorter one is in every other line.
SHORTEST_ANCHOR = 6

_DIGITS = frozenset(string.digits)
_KINDS: dict[str, frozenset[str] | None] = {
    "": None,
    "int": _DIGITS | {"-"},
    "number": _DIGITS | set(".,-+eE"),
    "word": frozenset(),  # anything but white space
}


class TemplateError(ValueError):
    """A text that cannot be looked for."""


@dataclass(frozen=True)
class _Gap:
    """A gap, and the literal part after it (empty at the end of the text). name: empty: not captured."""

    name: str
    kind: str
    after: str


@dataclass(frozen=True)
class Match:
    """A text in a line. begin, end: where it stands there. anchor: its longest literal part."""

    values: dict[str, str]
    begin: int
    end: int
    anchor: str


class Template:
    """One text to look for in lines."""

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            parts = list(string.Formatter().parse(text))
        except ValueError as error:
            raise TemplateError(f"{text!r}: {error}") from error
        self._first, self._gaps = "", []
        literals: list[str] = [""]
        for literal, name, kind, _ in parts:
            literals[-1] += literal
            if name is not None:
                self._check(name, kind or "", literals[-1])
                self._gaps.append(_Gap(name, kind or "", ""))
                literals.append("")
        self._first = literals[0]
        self._gaps = [
            _Gap(gap.name, gap.kind, after) for gap, after in zip(self._gaps, literals[1:], strict=True)
        ]
        if any(not gap.after for gap in self._gaps[:-1]) or not self._first:
            raise TemplateError(f"{text!r}: it must begin with text and have text between its gaps")
        #: The longest literal part: a line without it cannot match.
        self.anchor = max(literals, key=len)
        if len(self.anchor) < SHORTEST_ANCHOR:
            raise TemplateError(f"{text!r}: its longest literal part is shorter than {SHORTEST_ANCHOR}")
        self.names = frozenset(gap.name for gap in self._gaps if gap.name)

    def _check(self, name: str, kind: str, before: str) -> None:
        if kind not in _KINDS:
            raise TemplateError(f"{self.text!r}: {kind!r} is none of {', '.join(filter(None, _KINDS))}")
        if name and not name.isidentifier():
            raise TemplateError(f"{self.text!r}: {name!r} cannot be a value's name")

    def find(self, line: str) -> dict[str, str] | None:
        """The values captured from the line; None where the text is not in it."""
        found = self.match(line)
        return None if found is None else found.values

    def match(self, line: str) -> Match | None:
        """The text in the line; None where it is not there."""
        if self.anchor not in line:
            return None
        place = -1
        for _ in range(TRIES):
            place = line.find(self._first, place + 1)
            if place < 0:
                return None
            found = self._at(line, place)
            if found is not None and _whole(line, found.begin) and _whole(line, found.end):
                return found
        return None

    def _at(self, line: str, begin: int) -> Match | None:
        values: dict[str, str] = {}
        place = begin + len(self._first)
        for gap in self._gaps:
            end = line.find(gap.after, place) if gap.after else _end(line, place, gap.kind)
            if end < 0:
                return None
            value = line[place:end]
            if not _fits(value, gap.kind):
                return None
            if gap.name:
                values[gap.name] = value[:LONGEST_VALUE].strip()
            place = end + len(gap.after)
        return Match(values, begin, place, self.anchor)


def _whole(line: str, place: int) -> bool:
    """Whether no word goes on across a place: part of a longer name is another name."""
    return not 0 < place < len(line) or not (_of_word(line[place - 1]) and _of_word(line[place]))


def _of_word(character: str) -> bool:
    return character == "_" or (character.isascii() and character.isalnum())


def _end(line: str, place: int, kind: str) -> int:
    """Where a value at the end of a text ends: with the line, or with the first character it cannot have."""
    if not kind:
        return len(line)
    allowed = _KINDS[kind]
    end = place
    while end < len(line) and (line[end] in allowed if allowed else not line[end].isspace()):
        end += 1
    # A sentence's full stop is no part of a number.
    while kind == "number" and end > place and line[end - 1] in ".,":
        end -= 1
    return end


def _fits(value: str, kind: str) -> bool:
    allowed = _KINDS[kind]
    if allowed is None:
        return True
    if not value:
        return False
    return all(character in allowed for character in value) if allowed else not any(map(str.isspace, value))
