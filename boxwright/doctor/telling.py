"""A diagnosis as a person reads it: what, what to do, and the line that shows it, within 100 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from boxwright.doctor.diagnosis import WIDTH, Diagnosis, Report
from boxwright.doctor.doctor import diagnose
from boxwright.doctor.log import Log

#: Lines of evidence that are shown of one diagnosis.
SHOWN = 2
#: Diagnoses that are told of a release that does not serve; the first is the likeliest cause.
MOST = 2


def told(one: Diagnosis, indent: str = "  ") -> list[str]:
    """A diagnosis in lines. Of an unknown error its own lines are what there is to say."""
    deeper = indent + "  "
    lines = wrapped(one.cause, indent)
    if one.id == "unknown":
        lines += [line for found in one.evidence for line in wrapped(found.text, deeper, broken=True)]
    for number, way in enumerate(one.fix):
        word = "do" if number == 0 else "or"
        lines += textwrap.wrap(
            way, WIDTH, initial_indent=f"{deeper}{word}    ", subsequent_indent=deeper + " " * 6
        )
    if one.id != "unknown":
        for found in one.evidence[:SHOWN]:
            place = f"{found.source}, line {found.line}: " if found.line else f"{found.source}: "
            lines += wrapped(place + found.text, deeper + "seen  ", deeper + " " * 6, broken=True)
    return lines


def cause_of(log: Sequence[str], last: int) -> list[str]:
    """Why an engine ended, out of what it wrote; its `last` lines where nothing in it looks like a cause."""
    report = diagnose([Log("its log", "\n".join(log).encode(), "engine", "unit", "docker", "hub")])
    fatal = [one for one in report.causes if one.severity == "fatal"]
    if not fatal:
        return (
            [line for text in log[-last:] for line in wrapped(text.strip(), "  ", broken=True)]
            if last
            else []
        )
    return [line for one in fatal[:MOST] for line in told(one)]


def verdict(report: Report) -> str:
    """The report in a few words."""
    counts = {
        word: sum(one.severity == word and not one.past for one in report.causes)
        for word in ("fatal", "slows")
    }
    words = [
        f"{counts['fatal']} fatal" if counts["fatal"] else "nothing fatal",
        *([f"{counts['slows']} that cost speed or service"] if counts["slows"] else []),
        *([f"{len(report.harmless)} harmless"] if report.harmless else []),
    ]
    return ", ".join(words)


def wrapped(text: str, indent: str, later: str | None = None, *, broken: bool = False) -> list[str]:
    """Text in lines of at most WIDTH columns."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=" " * len(indent) if later is None else later,
        break_long_words=broken,
        break_on_hyphens=False,
    )
