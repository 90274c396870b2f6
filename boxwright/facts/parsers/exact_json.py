"""JSON of other people's that must come back as it was: numbers to the digit, keys in order, nothing lost.

Python's own reader keeps the last of two equal keys, makes 1.10 and 1e3 to other texts, reads NaN and takes
1e400 for infinity, which it then writes as a word that is no JSON. Here a number keeps its text, and what
cannot be kept is a mistake with its line.
"""

from __future__ import annotations

import bisect
import json
import math
import re
from decimal import Decimal
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

Path = Tuple[str, ...]
#: Levels of nesting that are read. Docker's settings have four; programs end by recursion at some hundreds.
DEEPEST = 64
#: Longest piece of a file that a message shows.
_SHOWN = 60
_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_EXPONENT = re.compile("[eE]")
_WORD = re.compile(r"[^\s,:\[\]{}\"]+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_WORDS = {"true": True, "false": False, "null": None}
_KINDS = {dict: "a mapping", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
_STRINGS = json.JSONDecoder()


class NotExact(Exception):
    """What stands there is no JSON, or cannot be kept. line, column: of it, from 1 (0: of no file)."""

    def __init__(self, text: str, line: int = 0, column: int = 0) -> None:
        super().__init__(text)
        self.line, self.column = line, column


class Number:
    """A number with its text: equal to others of its value, but a whole one to whole ones only.

    Docker does not take 1e3 where it wants an integer.
    """

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    @property
    def _value(self) -> Tuple[bool, Decimal]:
        # 0e99999999999999999999 is nothing too.
        value = Decimal(self.text) if _EXPONENT.split(self.text)[0].strip("-0.") else Decimal(0)
        return self.text.lstrip("-").isdigit(), value

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (int, float)) and not isinstance(other, bool):
            other = Number(repr(other))
        return isinstance(other, Number) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return self.text


class Document(NamedTuple):
    """A text, read. lines: where each setting stands, from 1."""

    value: Any
    lines: Dict[Path, int]


def read(text: str) -> Document:
    """The one value of a text. Raises NotExact."""
    # Editors of other systems begin a file with a byte order mark, which is not part of the text.
    reader = _Reader(text.lstrip("\ufeff"))
    value, end = reader.value(reader.space(0), ())
    if end != len(reader.text):
        raise reader.mistake(end, "%s after the end" % reader.shown(end))
    return Document(value, reader.lines)


def settings(text: Optional[str]) -> Dict[str, Any]:
    """The mapping that a file of settings holds; no file and an empty one have none. Raises NotExact."""
    if not (text or "").strip("\ufeff \t\r\n"):
        return {}
    value = read(text or "").value
    if not isinstance(value, dict):
        raise NotExact("%s in the place of settings" % kind(value), 1, 1)
    return value


def kind(value: Any) -> str:
    """What a value is, for a message."""
    return _KINDS.get(type(value), "a number")


def write(value: Any, indent: str) -> str:
    """The text of a value, its numbers as they were read, a line each setting."""
    return "".join(_pieces(value, indent, "\n"))


def ordered(value: Any) -> Any:
    """A value with the keys of its mappings by name: the same text for the same settings."""
    if isinstance(value, dict):
        return {key: ordered(value[key]) for key in sorted(value)}
    return [ordered(one) for one in value] if isinstance(value, (list, tuple)) else value


def exact(value: Any, where: str = "") -> Any:
    """A value of elsewhere as `read` gives them. where: its name, for messages. Raises NotExact."""
    return _exact(value, where, 0)


def _exact(value: Any, where: str, depth: int) -> Any:
    if depth > DEEPEST:
        raise NotExact("%s… is nested deeper than %d levels" % (where[:_SHOWN], DEEPEST))
    if isinstance(value, dict):
        found = {}
        for key, one in value.items():
            name = "%s.%s" % (where, key)
            found[_text(str(key), name)] = _exact(one, name, depth + 1)
        return found
    if isinstance(value, (list, tuple)):
        return [_exact(one, "%s[%d]" % (where, place), depth + 1) for place, one in enumerate(value)]
    if isinstance(value, str):
        return _text(value, where)
    if isinstance(value, float) and not math.isfinite(value):
        raise NotExact("%s: %r is no number that JSON has" % (where, value))
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return _number(repr(value))
        except NotExact as error:
            raise NotExact("%s: %s" % (where, error)) from None
    return value


def _number(text: str) -> Number:
    """Raises NotExact where Docker, which takes numbers as 64-bit ones, would read another one."""
    read_as, digits = float(text), _EXPONENT.split(text)[0]
    if math.isinf(read_as) or (read_as == 0 and digits.strip("-0.")):
        kind = "small" if read_as == 0 else "great"
        raise NotExact("the number %s is too %s for Docker to read" % (text[:_SHOWN], kind))
    return Number(text)


def _text(value: str, where: str) -> str:
    found = _SURROGATE.search(value)
    if found:
        name = where.encode("ascii", "backslashreplace").decode("ascii")
        raise NotExact("%s holds %r, half a character" % (name, found.group()))
    return value


def _pieces(value: Any, indent: str, line: str) -> Iterator[str]:
    below = line + indent
    if isinstance(value, dict) and value:
        for place, (key, one) in enumerate(value.items()):
            yield "%s%s%s: " % ("," if place else "{", below, _string(str(key)))
            yield from _pieces(one, indent, below)
        yield line + "}"
    elif isinstance(value, (list, tuple)) and value:
        for place, one in enumerate(value):
            yield ("," if place else "[") + below
            yield from _pieces(one, indent, below)
        yield line + "]"
    elif isinstance(value, str):
        yield _string(value)
    else:
        yield value.text if isinstance(value, Number) else json.dumps(value, allow_nan=False)


def _string(text: str) -> str:
    """A text as JSON; half a character as the escape that it must have come from."""
    return _SURROGATE.sub(lambda one: "\\u%04x" % ord(one.group()), json.dumps(text, ensure_ascii=False))


class _Reader:
    """Reads a text from left to right; every step takes and gives a position in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines: Dict[Path, int] = {}
        self.ends = [found.start() for found in re.finditer("\n", text)]

    def line(self, at: int) -> int:
        """Number of the line in which a place lies, from 1."""
        return bisect.bisect_left(self.ends, at) + 1

    def mistake(self, at: int, what: str) -> NotExact:
        """With the place in the text."""
        return NotExact(what, self.line(at), at - self.text.rfind("\n", 0, at))

    def shown(self, at: int) -> str:
        """What stands at a place, for a message."""
        if at >= len(self.text):
            return "the end of the file"
        found = _WORD.match(self.text, at)
        return repr((found.group() if found else self.text[at])[:_SHOWN])

    def space(self, at: int) -> int:
        """The next place that holds no white space."""
        found = _SPACE.match(self.text, at)
        return found.end() if found else at

    def value(self, at: int, path: Path) -> Tuple[Any, int]:
        """The value that begins here, and the place after it and its white space."""
        if len(path) > DEEPEST:
            raise self.mistake(at, "nested deeper than %d levels" % DEEPEST)
        begin = self.text[at : at + 1]
        if begin == "{":
            found, end = self.mapping(at + 1, path)
        elif begin == "[":
            found, end = self.elements(at + 1, path)
        elif begin == '"':
            found, end = self.string(at)
        else:
            found, end = self.plain(at)
        return found, self.space(end)

    def mapping(self, at: int, path: Path) -> Tuple[Any, int]:
        """After the brace that opens it."""
        found: Dict[str, Any] = {}
        at = self.space(at)
        if self.text[at : at + 1] == "}":
            return found, at + 1
        while True:
            if self.text[at : at + 1] != '"':
                raise self.mistake(at, "%s in the place of a key in double quotes" % self.shown(at))
            key, end = self.string(at)
            here = (*path, key)
            if key in found:
                raise self.mistake(
                    at, "the key %r stands there already, in line %d" % (key[:_SHOWN], self.lines[here])
                )
            self.lines[here] = self.line(at)
            at = self.space(end)
            if self.text[at : at + 1] != ":":
                raise self.mistake(at, "%s in the place of a colon" % self.shown(at))
            found[key], at = self.value(self.space(at + 1), here)
            if self.text[at : at + 1] == "}":
                return found, at + 1
            at = self.after_comma(at, "}")

    def elements(self, at: int, path: Path) -> Tuple[Any, int]:
        """After the bracket that opens the list."""
        found: List[Any] = []
        at = self.space(at)
        if self.text[at : at + 1] == "]":
            return found, at + 1
        while True:
            one, at = self.value(at, (*path, str(len(found))))
            found.append(one)
            if self.text[at : at + 1] == "]":
                return found, at + 1
            at = self.after_comma(at, "]")

    def after_comma(self, at: int, end: str) -> int:
        """The next entry's place."""
        if self.text[at : at + 1] != ",":
            raise self.mistake(at, "%s in the place of a comma or %s" % (self.shown(at), end))
        following = self.space(at + 1)
        if self.text[following : following + 1] == end:
            raise self.mistake(at, "a comma before %s" % end)
        return following

    def string(self, at: int) -> Tuple[str, int]:
        """The text whose opening quote stands here."""
        try:
            return _STRINGS.raw_decode(self.text, at)
        except json.JSONDecodeError as error:
            raise self.mistake(error.pos, error.msg[:1].lower() + error.msg[1:]) from error

    def plain(self, at: int) -> Tuple[Any, int]:
        """A number, or one of the three words."""
        word = _WORD.match(self.text, at)
        if word and word.group() in _WORDS:
            return _WORDS[word.group()], word.end()
        found = _NUMBER.match(self.text, at)
        if not found or not word or found.end() != word.end():
            raise self.mistake(at, "%s is no value of JSON" % self.shown(at))
        try:
            return _number(found.group()), found.end()
        except NotExact as error:
            raise self.mistake(at, str(error)) from None
