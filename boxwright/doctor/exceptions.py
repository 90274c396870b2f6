"""Tracebacks in a log of several processes, however they are indented, and what their exceptions say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from boxwright.facts.parsers.log_lines import Line

#: How a traceback begins, of Python and of programs that draw a frame around it.
TRACEBACK = "Traceback (most recent call last)"
#: What an exception's last lines look like: its class, with its module, and a message.
_EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*(?P<name>[A-Z]\w*)(?::(?: (?P<message>.*))?)?$")
#: Right behind the frames a class may have any name (socket.gaierror, zlib.error).
_AT_THE_END = re.compile(r"^(?:[A-Za-z_]\w*\.)+[A-Za-z_]\w*(?::(?: .*)?)?$")
#: What is surely one, also where others' lines stand between it and its frames, or where it stands alone.
SURELY = re.compile(
    r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Resources|Expired|Timeout|Group|Iteration)"
    r"(?::(?: .*)?)?$"
)
_CHAINED = re.compile(r"^(The above exception was the direct cause|During handling of the above exception)")
#: Exceptions that only say that another one happened elsewhere.
_WRAPPER = re.compile(
    r"Engine core initialization failed|WorkerProc initialization failed|Engine process failed to start"
    r"|Engine core process \S+ died|Frontend process failed during|EngineDeadError"
    r"|EngineCore encountered an issue"
    r"|^(SystemExit|KeyboardInterrupt|CancelledError|asyncio\.exceptions\.CancelledError)|cancelled by"
    r"|ChildFailedError|^EOFError$|^BrokenPipeError|\(\d{1,6} sub-exceptions?\)$"
)
#: The margin that Python draws beside the members of a group, and the line that begins or ends one.
_MARGIN = re.compile(r"^(\s{0,200})(?:\|(?: |$)|\+ (?=Exception Group ))")
_DIVIDER = re.compile(r"^\s{0,200}\+(?:-\+)?-{4,40}(?: (?:\d{1,6}|\.\.\.) -{4,40}|-{0,40})$")
#: Frames that a program draws around its frames.
_DRAWN = ("\u2502", "\u256d", "\u2570", "\u2571", "\u2503", "\u250f", "\u2517")
#: Levels at which an engine tells what it does, and what was asked of it: none of that is its end.
PASSING = ("DEBUG", "INFO")
MOST_LINES = 8
LONGEST = 600
#: Lines of others between the frames and their exception, after which it is looked for no more.
MOST_BETWEEN = 40
#: Lines above a traceback among which it is looked for what led to it.
MOST_ABOVE = 12

_GROUP = "Exception Group Traceback"

Placed = tuple[int, Line]


@dataclass(frozen=True)
class Raised:
    """One exception: its message's lines, the place of the first one, and whether another led to it."""

    place: int
    lines: tuple[str, ...]
    chained: bool

    @property
    def wrapper(self) -> bool:
        """Whether it only says that another one happened elsewhere."""
        return wraps(self.lines[0])


def wraps(text: str) -> bool:
    """Whether an exception only says that another one happened elsewhere."""
    return bool(_WRAPPER.search(text))


def chains(lines: Sequence[Placed]) -> list[list[Raised]]:
    """Tracebacks in the order they began, those that were raised from one another together."""
    found: list[tuple[int, list[Raised]]] = []
    own_lines: dict[str, list[Placed]] = {}
    for place, line in lines:
        own_lines.setdefault(line.process, []).append((place, line))
    for own in own_lines.values():
        found += _of_process([(place, _without_margin(line)) for place, line in own])
    return [chain for _, chain in sorted(found, key=lambda item: item[0])]


def _of_process(own: Sequence[Placed]) -> list[tuple[int, list[Raised]]]:
    position = 0
    found: list[tuple[int, list[Raised]]] = []
    # Members of a group came with it: its place and how far it stands in.
    group, depth = 0, -1
    while position < len(own):
        place, line = own[position]
        position += 1
        if line.level in (*PASSING, "WARNING"):
            continue
        if _DIVIDER.match(line.text):
            # A member of a group that was made and never raised has no traceback.
            raised, after = (
                _said(own, position, _indent(own[position][1].text)) if position < len(own) else (None, 0)
            )
        elif begins(line.text):
            raised, after = _raised(own, position, _indent(line.text), line)
        else:
            continue
        if _GROUP in line.text and not _indent(line.text) > depth >= 0:
            group, depth = place, _indent(line.text)
        elif depth >= 0 and (_indent(line.text) > depth or _DIVIDER.match(line.text)):
            place = group
        else:
            depth = -1
        position = max(position, after)
        if raised is None:
            continue
        if raised.chained and found:
            found[-1][1].append(raised)
        else:
            found.append((place, [raised]))
    return found


def begins(text: str) -> bool:
    """Whether a traceback begins with the line: behind its words is at most a frame that somebody drew."""
    _, words, rest = text.rpartition(TRACEBACK)
    return bool(words) and not rest.strip(": \u2500\u256e\u2501\u2513")


def _without_margin(line: Line) -> Line:
    """A line of a group's member without what Python draws beside it; the indentation stays."""
    text = line.text
    for _ in range(8):
        found = _MARGIN.match(text)
        if found is None:
            break
        text = text[: found.end(1)] + text[found.end() :]
    return line._replace(text=text)


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _raised(own: Sequence[Placed], position: int, indent: int, opening: Line) -> tuple[Raised | None, int]:
    """The exception of the traceback whose frames begin at `position`, and where to read on.

    indent: how far its first line stands in; frames stand further. Others may write in between.
    """
    between, strange = 0, False
    while position < len(own) and between <= MOST_BETWEEN:
        text = own[position][1].text
        if begins(text) or _CHAINED.match(text.strip()) or _DIVIDER.match(text):
            return None, position
        if _indent(text) > indent or text.lstrip().startswith(_DRAWN) or not text.strip():
            position += 1
            continue
        foreign = own[position][1].level != opening.level and own[position][1].level is not None
        said, after = (None, position) if foreign else _said(own, position, indent, sure=strange)
        if said is not None:
            return said, after
        between, strange = between + 1, strange or not foreign
        position += 1
    return None, position


def _said(
    own: Sequence[Placed], position: int, indent: int, *, sure: bool = False
) -> tuple[Raised | None, int]:
    """The exception at `position`, if one is there, with the lines of its message; and where to read on."""
    place, first = own[position]
    text = first.text.strip()[:LONGEST]
    known = SURELY.match(text) if sure else _EXCEPTION.match(text) or _AT_THE_END.match(text)
    if not known or begins(text):
        return None, position
    said = [_dedented(first.text, indent)]
    after = position + 1
    while after < len(own) and len(said) < MOST_LINES:
        line = own[after][1]
        stripped = line.text.strip()
        if (
            line.level != first.level
            or _CHAINED.match(stripped)
            or TRACEBACK in line.text
            or _DIVIDER.match(line.text)
            or (_indent(line.text) <= indent and _EXCEPTION.match(stripped[:LONGEST]))
        ):
            break
        said.append(_dedented(line.text, indent))
        after += 1
    return Raised(place, tuple(said), _is_chained(own, position)), after


def _is_chained(own: Sequence[Placed], position: int) -> bool:
    """Whether another exception led to the one at `position`: it is said right above its traceback."""
    while position > 0 and not begins(own[position][1].text):
        position -= 1
    return any(_CHAINED.match(line.text.strip()) for _, line in own[max(0, position - MOST_ABOVE) : position])


def _dedented(text: str, indent: int) -> str:
    return text[indent:] if not text[:indent].strip() else text.lstrip()
