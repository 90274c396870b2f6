"""From logs and readings to a report: what is wrong, most likely root first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from boxwright.doctor import library
from boxwright.doctor.diagnosis import WIDTH, Diagnosis, Evidence, Report
from boxwright.doctor.exceptions import TRACEBACK
from boxwright.doctor.log import OF_A_START, Log, Place
from boxwright.doctor.matcher import Found, find, inside
from boxwright.doctor.signature import SEVERITIES, Signature
from boxwright.doctor.tracebacks import RootCause, root_cause
from boxwright.facts.parsers.log_lines import Line
from boxwright.facts.parsers.masking import mask

#: Lines around the first traceback that are read to find the root cause of an unknown error.
MOST_LINES = 6000
#: Stretches of as many lines that are read for one: the first tracebacks may only be warned of.
MOST_STRETCHES = 20
#: Lines from a traceback of another program on that are read for what it says.
MOST_OF_OTHERS = 400
#: What is said of a fault that an engine only warns of.
WARNED = "It is only warned of: what says so went on."
#: What is said of a fault of the box of which another program tells.
TOLD_BY = "It is {program} that says so, which is none of the engine's programs."
#: Places from what lies deepest on: a card that is lost explains all that stands on it.
DEPTH = ("kernel", "nvidia-smi", "docker", "hub", "unit", "engine", "readings")


def diagnose(
    logs: Iterable[Log],
    readings: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    since: float | None = None,
    signatures: Sequence[Signature] | None = None,
) -> Report:
    """Diagnose texts and values.

    readings: by what they are of (a deployment, the host). since: seconds since 1970 at which the engine that
    serves now was started; what has a time before it is past. Never raises because of what a log holds.
    """
    known = library.signatures() if signatures is None else signatures
    found: list[tuple[Signature, Diagnosis, tuple[int, int]]] = []
    unknown: list[tuple[Diagnosis, tuple[int, int]]] = []
    others: list[Diagnosis] = []
    for number, log in enumerate(logs):
        hits = find(log, known)
        others += [_diagnosis(hit, since) for hit in hits if hit.elsewhere]
        others += _unknown_of_others(log, hits)
        hits = [hit for hit in hits if not hit.elsewhere]
        for hit in hits:
            found.append((hit.signature, _diagnosis(hit, since), (number, hit.position)))
        other = _unknown(log, hits)
        if other is not None:
            unknown.append((other[0], (number, other[1])))
    for name, values in (readings or {}).items():
        for signature in known:
            if signature.when and signature.holds(values):
                found.append((signature, _of_readings(signature, name, values), (len(found), 0)))
    others.sort(key=lambda one: (one.evidence[0].source, one.evidence[0].line or 0))
    return replace(_report(_merged(found), unknown), others=tuple(others))


def _merged(
    found: Iterable[tuple[Signature, Diagnosis, tuple[int, int]]],
) -> list[tuple[Signature, Diagnosis, tuple[int, int]]]:
    """One diagnosis of a kind: the same fault in two logs is one fault."""
    kinds: dict[str, tuple[Signature, Diagnosis, tuple[int, int]]] = {}
    for signature, one, order in found:
        if signature.id not in kinds:
            kinds[signature.id] = (signature, one, order)
            continue
        _, first, place = kinds[signature.id]
        both = Diagnosis(
            first.id,
            min(first.severity, one.severity, key=SEVERITIES.index),
            first.cause if not first.past else one.cause,
            first.fix if not first.past else one.fix,
            first.link,
            (*first.evidence, *one.evidence)[:4],
            first.count + one.count,
            first.values,
            past=first.past and one.past,
            program=first.program and one.program,
        )
        kinds[signature.id] = (signature, both, place)
    return list(kinds.values())


def _report(
    found: Sequence[tuple[Signature, Diagnosis, tuple[int, int]]],
    unknown: Sequence[tuple[Diagnosis, tuple[int, int]]],
) -> Report:
    present = {signature.id: one for signature, one, _ in found}
    causes: list[tuple[tuple[Any, ...], Diagnosis]] = []
    consequences: list[Diagnosis] = []
    # What a state says and no log explains: a service that was stopped leaves no error behind.
    states: list[tuple[tuple[Any, ...], Diagnosis]] = []
    harmless: list[Diagnosis] = []
    for signature, one, order in found:
        why = next(
            (
                other.id
                for other, diagnosis, _ in found
                if signature.id in other.explains and not diagnosis.past and not diagnosis.program
            ),
            None,
        )
        depth = min(DEPTH.index(place) for place in signature.where)
        key = (one.past, SEVERITIES.index(one.severity), depth, order)
        if signature.severity == "harmless":
            harmless.append(one)
        elif signature.consequence and signature.when and not why:
            states.append((key, one))
        elif signature.consequence or why:
            consequences.append(_because(one, why))
        else:
            causes.append((key, one))
    fatal = any(one.severity == "fatal" and not one.past for _, one in causes)
    for one, order in unknown:
        if not fatal or not present:
            causes.append(((False, SEVERITIES.index(one.severity), -1 if not fatal else 99, order), one))
    if consequences and not causes:
        causes.append(((), _only_consequences(consequences)))
    if any(one.severity == "fatal" and not one.past for _, one in causes):
        consequences += [one for _, one in states]
    else:
        causes += states
    return Report(
        tuple(one for _, one in sorted(causes, key=lambda item: item[0])),
        tuple(consequences),
        tuple(harmless),
    )


def _because(one: Diagnosis, why: str | None) -> Diagnosis:
    return replace(one, because=why)


def _only_consequences(consequences: Sequence[Diagnosis]) -> Diagnosis:
    """A log that was cut off: it holds the end of the story and not its beginning."""
    return Diagnosis(
        "unknown",
        "fatal",
        "The log tells only that something failed; what failed stands further up than it reaches.",
        ("read a longer part of the log: journalctl -t boxwright-DEPLOYMENT -n 5000",),
        None,
        consequences[0].evidence,
    )


def _diagnosis(hit: Found, since: float | None) -> Diagnosis:
    values = {name: mask(value) for name, value in hit.values.items()}
    cause, fix = hit.signature.told(values)
    last = hit.line.time
    remark = WARNED if hit.severity != hit.signature.severity else ""
    if hit.program and not hit.elsewhere:
        remark = TOLD_BY.format(program=hit.program)
    return Diagnosis(
        hit.signature.id,
        hit.severity,
        f"{cause} {remark}".rstrip(),
        fix,
        hit.signature.source,
        tuple(
            Evidence(hit.log.name, hit.log.number(place), shortened(text, about=anchor))
            for place, text, anchor in hit.lines
        ),
        hit.count,
        values,
        past=since is not None and last is not None and last < since,
        program=hit.program,
    )


def _of_readings(signature: Signature, name: str, values: Mapping[str, Any]) -> Diagnosis:
    told = {condition.reading: _rounded(values[condition.reading]) for condition in signature.when}
    cause, fix = signature.told(told)
    evidence = Evidence(name, None, ", ".join(f"{key} {value}" for key, value in told.items()))
    return Diagnosis(signature.id, signature.severity, cause, fix, signature.source, (evidence,), 1, told)


def _rounded(value: Any) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def _unknown(log: Log, hits: Sequence[Found]) -> tuple[Diagnosis, int] | None:
    """An error that no signature describes, with the lines that say what it is; None where there is none."""
    if log.kinds and not log.kinds & OF_A_START:
        return None
    first = log.begin()
    serving = log.serving(first)
    place = next((one.start for one, line in _tracebacks(log, first) if not log.speakers.other(line)), -1)
    if place < 0 and serving >= 0:
        return None
    lines, found = _read(log, first, place)
    if found is None or found.wrapper or _told_by(found, [line.text for _, line in lines], hits):
        return None
    number = lines[found.place][0]
    survived = serving >= 0 and not any(hit.severity == "fatal" for hit in hits)
    if survived and place < 0:
        return None
    cause = (
        "The engine met an error that is not known here, and went on."
        if survived
        else "An error that is not known here; these lines are where it began."
    )
    evidence = tuple(Evidence(log.name, number, shortened(text, WIDTH * 2)) for text in found.lines)
    severity = "slows" if survived else "fatal"
    fix = ("look for the first of these lines in the engine's issues, and tell Boxwright's about it",)
    return Diagnosis("unknown", severity, cause, fix, None, evidence), number


def _read(log: Log, first: int, place: int) -> tuple[list[tuple[int, Line]], RootCause | None]:
    """The lines around the first traceback that is no mere warning, or the last ones; and what they tell."""
    lines: list[tuple[int, Line]] = []
    found: RootCause | None = None
    for _ in range(MOST_STRETCHES):
        if place < 0:
            break
        begin = max(first, log.line_at(place).start - 4096)
        lines = _own(log, log.lines(begin, MOST_LINES))
        found = root_cause((line for _, line in lines), last=0, parts=not log.kinds)
        end = log.after(begin, MOST_LINES)
        if (found is not None and not found.wrapper) or end < 0:
            return lines, found
        place = log.data.find(TRACEBACK.encode(), end)
    if not lines:
        lines = _own(log, [one for one in log.last_lines(MOST_LINES) if one[0] >= log.number(first)])
        found = root_cause((line for _, line in lines), last=0, parts=not log.kinds)
    return lines, found


def _tracebacks(log: Log, start: int) -> Iterator[tuple[Place, Line]]:
    return ((place, log.text(place)) for place in log.finds(TRACEBACK.encode(), start))


def _own(log: Log, lines: Iterable[tuple[int, Line]]) -> list[tuple[int, Line]]:
    """Lines without those of other programs."""
    return [one for one in lines if not log.speakers.other(one[1])]


def _unknown_of_others(log: Log, hits: Sequence[Found]) -> list[Diagnosis]:
    """With what other programs ended, of each its first error that no signature describes."""
    told: dict[str, Diagnosis] = {}
    known = {hit.program for hit in hits if hit.elsewhere}
    for place, line in _tracebacks(log, 0):
        program = log.speakers.other(line)
        if not program or program in known or program in told:
            continue
        lines = [one for one in log.lines(place.start, MOST_OF_OTHERS) if one[1].program == line.program]
        found = root_cause((one for _, one in lines), last=0)
        if found is not None:
            evidence = Evidence(log.name, lines[found.place][0], shortened(found.lines[0]))
            told[program] = Diagnosis(
                "unknown", "fatal", "An error that is not known here.", (), None, (evidence,), program=program
            )
    return list(told.values())


def _told_by(found: RootCause, lines: Sequence[str], hits: Sequence[Found]) -> bool:
    """Whether a signature says it already: it is in the exception's own lines.

    A remark that is harmless explains no end, though it may stand right behind it.
    """
    telling = [hit for hit in hits if hit.signature.severity != "harmless"]
    return inside(telling, [*found.lines, *lines[found.place : found.place + len(found.lines)]])


def shortened(text: str, width: int = WIDTH, about: str = "") -> str:
    """A line of a log as it is shown: without secrets, white space and whatever is over the width.

    about: the part of the line that matters; a long line is cut around it.
    """
    told = mask(" ".join(text.split()))
    if len(told) <= width:
        return told
    place = max(0, told.find(" ".join(about.split())))
    if place + len(about) <= width - 2:
        return told[: width - 2] + " …"
    # What stands before it tells who speaks; of what comes after it the values matter more.
    begin = min(max(0, place - width // 4), len(told) - (width - 4))
    end = begin + width - 4
    return "… " + told[begin:end].strip() + (" …" if end < len(told) else "")
