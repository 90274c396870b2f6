"""Exceptions in a log of several processes: which one came first, and what it says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from boxwright.facts.parsers.log_lines import Line

TRACEBACK = "Traceback (most recent call last):"
_EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*(?P<name>[A-Z]\w*)(?:: (?P<message>.*))?$")
_CHAINED = re.compile(r"^(The above exception was the direct cause|During handling of the above exception)")
#: Exceptions that only say that another one happened elsewhere.
_WRAPPER = re.compile(
    r"Engine core initialization failed|WorkerProc initialization failed|Engine process failed to start"
    r"|Engine core process \S+ died|Frontend process failed during|EngineDeadError"
    r"|EngineCore encountered an issue"
    r"|^(SystemExit|KeyboardInterrupt|CancelledError|asyncio\.exceptions\.CancelledError)|cancelled by"
    r"|ChildFailedError|^EOFError$|^BrokenPipeError"
)
#: Lines that name a cause without a traceback, the surest first.
_PLAIN_CAUSES = (
    re.compile(r"^docker: "),
    re.compile(
        r"\berror: (unrecognized arguments|argument |ambiguous option|the following arguments|invalid choice)"
    ),
    re.compile(r"(not found|Permission denied|No such file or directory|Exec format error)$"),
    re.compile(
        r"died unexpectedly|exit code: -?\d+|Illegal instruction|Segmentation fault|core dumped|^Killed$"
    ),
    re.compile(r"(?i)out of memory|no space left on device"),
    re.compile(r"^no /dev/nvidia-uvm"),
)
#: What the unit's own calls of docker say when there is nothing to remove or to stop.
_NOISE = re.compile(r"^(Error response from daemon: No such container: boxwright-|boxwright-[\w.-]+$)")
#: Levels at which an engine tells what it does, and what was asked of it: none of that is its end.
PASSING = ("DEBUG", "INFO")
MOST_LINES = 8
LONGEST = 600


@dataclass(frozen=True)
class Raised:
    """One exception: its message's lines, the place of the first one, and whether another led to it."""

    place: int
    lines: tuple[str, ...]
    chained: bool

    @property
    def wrapper(self) -> bool:
        """Whether it only says that another one happened elsewhere."""
        return bool(_WRAPPER.search(self.lines[0]))


@dataclass(frozen=True)
class RootCause:
    """Why a process ended. sure: an exception or an error names it, not just the last lines."""

    lines: tuple[str, ...]
    place: int
    sure: bool
    wrapper: bool = False


def root_cause(log: Iterable[Line], last: int = 5) -> RootCause | None:
    """The lines that say why an engine ended; its `last` ones when nothing in it looks like a cause.

    vLLM's server process ends with "Engine core initialization failed. See root cause above": the cause is
    the first exception of another process, hundreds of lines earlier. Of exceptions raised from one another
    the last is what its author meant a person to read; the innermost is given beside it. Places are indices
    into `log`.
    """
    lines = [
        (place, line) for place, line in enumerate(log) if line.text.strip() and not _NOISE.match(line.text)
    ]
    found = chains(lines)
    for chain in found:
        real = [raised for raised in chain if not raised.wrapper]
        if real:
            said = list(real[-1].lines)
            if real[0] is not real[-1]:
                said = [*said[: MOST_LINES - 1], "raised from " + real[0].lines[0]]
            return RootCause(_short(said), real[0].place, sure=True)
    for pattern in _PLAIN_CAUSES:
        plain = [
            (place, line.text)
            for place, line in lines
            if line.level not in PASSING and pattern.search(line.text)
        ]
        if plain:
            return RootCause(_short(text for _, text in plain[:2]), plain[0][0], sure=True)
    if found:
        only = found[0][-1]
        return RootCause(_short(only.lines), only.place, sure=True, wrapper=True)
    errors = [(place, line.text) for place, line in lines if line.level in ("ERROR", "CRITICAL")]
    if errors:
        return RootCause(_short(text for _, text in errors[:3]), errors[0][0], sure=True)
    if not lines or not last:
        return None
    return RootCause(_short(line.text for _, line in lines[-last:]), lines[-last:][0][0], sure=False)


def chains(lines: Sequence[tuple[int, Line]]) -> list[list[Raised]]:
    """Tracebacks in the order they began, those that were raised from one another together."""
    found: list[tuple[int, list[Raised]]] = []
    own_lines: dict[str, list[tuple[int, Line]]] = {}
    for place, line in lines:
        own_lines.setdefault(line.process, []).append((place, line))
    for own in own_lines.values():
        position = 0
        mine: list[tuple[int, list[Raised]]] = []
        while position < len(own):
            place, line = own[position]
            if not line.text.rstrip().endswith(TRACEBACK) or line.level in (*PASSING, "WARNING"):
                position += 1
                continue
            raised, position = _raised(own, position + 1)
            if raised is None:
                continue
            if raised.chained and mine:
                mine[-1][1].append(raised)
            else:
                mine.append((place, [raised]))
        found += mine
    return [chain for _, chain in sorted(found, key=lambda item: item[0])]


def _raised(own: Sequence[tuple[int, Line]], position: int) -> tuple[Raised | None, int]:
    """The exception at the end of the traceback whose frames begin at `position`, and where to read on."""
    chained = any(_CHAINED.match(line.text) for _, line in own[max(0, position - 3) : position])
    while position < len(own) and own[position][1].text.startswith((" ", "\t")):
        position += 1
    if position == len(own) or not _EXCEPTION.match(own[position][1].text[:LONGEST]):
        return None, position
    place, first = own[position]
    said = [first.text]
    position += 1
    while position < len(own):
        line = own[position][1]
        if (
            line.level != first.level
            or _CHAINED.match(line.text)
            or TRACEBACK in line.text
            or _EXCEPTION.match(line.text[:LONGEST])
            or len(said) == MOST_LINES
        ):
            break
        said.append(line.text)
        position += 1
    return Raised(place, tuple(said), chained), position


def _short(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(line if len(line) <= LONGEST else line[:LONGEST] + " …" for line in list(lines)[:MOST_LINES])
