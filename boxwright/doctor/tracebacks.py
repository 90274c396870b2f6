"""Why a process ended, out of a log of several: the exception that came first, or what else names a cause."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from boxwright.doctor.exceptions import PASSING, SURELY, begins, chains, wraps
from boxwright.doctor.talk import is_talk
from boxwright.facts.parsers.log_lines import Line

#: Lines that name a cause without a traceback, the surest first. Whoever says them stands before them: what
#: somebody only mentions is no end of a program.
_PLAIN_CAUSES = (
    re.compile(r"^docker: "),
    re.compile(
        r"\berror: (unrecognized arguments|argument |ambiguous option|the following arguments|invalid choice)"
    ),
    re.compile(
        r"^[\w./-]{1,200}(?:: line \d{1,6}|: \d{1,6})?: (?:[^:]{1,200}: ){0,3}"
        r"(command not found|not found|Permission denied|No such file or directory|Exec format error)$"
    ),
    re.compile(r"^exec [^:]{1,200}: (exec format error|no such file or directory|permission denied)$"),
    re.compile(
        r"died unexpectedly|exit code: -?[1-9]\d*|^Fatal Python error: |^terminate called after throwing"
        r"|^(?:[\w./-]{1,200}: line \d{1,6}: +\d{1,10} )?"
        r"(?:Illegal instruction|Segmentation fault|Aborted|Bus error|Killed)"
        r"(?: +\(core dumped\))?(?: {2,}\S.*)?$"
        r"|^thread '[^']{0,80}'(?: \(\d+\))? panicked at |^panic: "
    ),
    re.compile(r"(?i)^(?:[\w.:/\[\] -]{1,120}: )?(?:\w{1,40}: )?(?:out of memory|no space left on device)\b"),
    re.compile(r"^no /dev/nvidia-uvm"),
)
#: What the unit's own calls of docker say when there is nothing to remove or to stop.
_NOISE = re.compile(r"^(Error response from daemon: No such container: boxwright-|boxwright-[\w.-]+$)")
MOST_LINES = 8
LONGEST = 600


@dataclass(frozen=True)
class RootCause:
    """Why a process ended. sure: an exception or an error names it, not just the last lines."""

    lines: tuple[str, ...]
    place: int
    sure: bool
    wrapper: bool = False


def root_cause(log: Iterable[Line], last: int = 5, *, parts: bool = False) -> RootCause | None:
    """The lines that say why an engine ended; its `last` ones when nothing in it looks like a cause.

    vLLM's server process ends with "Engine core initialization failed. See root cause above": the cause is
    the first exception of another process, hundreds of lines earlier. Of exceptions raised from one another
    the last is what its author meant a person to read; the innermost is given beside it. Places are indices
    into `log`. parts: somebody may have pasted only the end of a traceback, or its beginning.
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
        plain = [(place, line.text) for place, line in lines if _names_cause(pattern, line)]
        if plain:
            return RootCause(_short(text for _, text in plain[:2]), plain[0][0], sure=True)
    if found:
        only = found[0][-1]
        return RootCause(_short(only.lines), only.place, sure=True, wrapper=True)
    part = _part(lines) if parts else None
    if part is not None:
        return part
    errors = [(place, line.text) for place, line in lines if line.level in ("ERROR", "CRITICAL")]
    if errors:
        return RootCause(_short(text for _, text in errors[:3]), errors[0][0], sure=True)
    if not lines or not last:
        return None
    return RootCause(_short(line.text for _, line in lines[-last:]), lines[-last:][0][0], sure=False)


def _part(lines: Sequence[tuple[int, Line]]) -> RootCause | None:
    """What a part of a traceback tells: the last exception that stands alone, or the first frames."""
    alone = [
        (place, line.text.strip())
        for place, line in lines
        if _names_cause(SURELY, line) and not wraps(line.text.strip())
    ]
    if alone:
        return RootCause(_short([alone[-1][1]]), alone[-1][0], sure=True)
    for index, (place, line) in enumerate(lines):
        if begins(line.text) and line.level not in (*PASSING, "WARNING"):
            shown = lines[index : index + MOST_LINES]
            return RootCause(_short(one.text for _, one in shown), place, sure=True)
    return None


def _names_cause(pattern: re.Pattern[str], line: Line) -> bool:
    """Whether a line names a cause: neither in passing, nor as a warning, nor in what somebody said."""
    if line.level in (*PASSING, "WARNING"):
        return False
    text = line.text.strip()
    found = pattern.search(text)
    return found is not None and not is_talk(text, found.start())


def _short(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(line if len(line) <= LONGEST else line[:LONGEST] + " …" for line in list(lines)[:MOST_LINES])
