"""Finding signatures in logs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from boxwright.doctor.log import Log
from boxwright.doctor.signature import SEVERITIES, Signature
from boxwright.doctor.talk import is_talk
from boxwright.doctor.template import Match
from boxwright.facts.parsers.log_lines import Line

#: Bytes from which on a log is folded before it is searched.
WORTH_FOLDING = 1 << 20
DIGITS = b"0123456789"
#: Lines of evidence that are kept of each find.
MOST_EVIDENCE = 3
#: Places whose texts do not begin anew with a start of an engine.
OF_THE_HOST = frozenset(("kernel", "nvidia-smi"))
_VERSION = re.compile(
    rb"(?:vLLM (?:API )?server version |Initializing a V\d LLM engine \(v?)(\d{1,4}\.\d{1,4}\.\d{1,4})"
)


@dataclass
class Found:
    """A signature in a log.

    severity: the worst of its lines'. position: the byte of the first of these. program: another one than the
    engine's that says it; empty where the engine does. lines: the byte of each that shows it, its text, and
    the part of it that was looked for.
    """

    signature: Signature
    log: Log
    severity: str
    position: int
    values: Mapping[str, str]
    line: Line
    program: str = ""
    lines: list[tuple[int, str, str]] = field(default_factory=list)
    places: set[int] = field(default_factory=set)
    count: int = 0

    @property
    def elsewhere(self) -> bool:
        """Whether it is a fault of another program alone: what the kernel could say is the whole box's."""
        return bool(self.program) and "kernel" not in self.signature.where


def versions_in(data: bytes) -> dict[str, str]:
    """Versions of engines that a log names: its last one."""
    known = [found.group(1).decode() for found in _VERSION.finditer(data)]
    return {"vllm": known[-1]} if known else {}


def find(log: Log, signatures: Iterable[Signature], versions: Mapping[str, str] | None = None) -> list[Found]:
    """All signatures that are in a log, in the order of their first line."""
    known = versions_in(log.data) if versions is None else versions
    first = log.begin()
    by_anchor: dict[bytes, list[Signature]] = {}
    remarks: list[Signature] = []
    for signature in signatures:
        if (
            signature.texts
            and signature.covers(known)
            and (not log.kinds or log.kinds.intersection(signature.where))
        ):
            if signature.severity == "harmless":
                remarks.append(signature)
            for text in signature.texts:
                by_anchor.setdefault(text.anchor.encode(), []).append(signature)
    found: dict[str, Found] = {}
    for anchor in present(log.data, by_anchor):
        for place in log.finds(anchor):
            line = log.text(place)
            for signature in by_anchor[anchor]:
                if place.start < first and not OF_THE_HOST.issuperset(signature.where):
                    continue
                match = signature.match(line.text)
                severity = match and severity_of(signature, line, match)
                if match and severity and not (severity != "harmless" and _shadowed(line, match, remarks)):
                    program = log.speakers.other(line)
                    one = Found(signature, log, severity, place.start, match.values, line, program)
                    if program and not one.elsewhere:
                        one.severity = max(severity, "slows", key=SEVERITIES.index)
                    if not (program and severity == "harmless"):
                        _add(found, one, match)
    return sorted(found.values(), key=lambda one: one.position)


def present(data: bytes, texts: Iterable[bytes]) -> list[bytes]:
    """The texts that may be in the data.

    Lines of a long log differ in little more than numbers. Without their digits, and each kept once, they are
    few, and looking through them shows what need not be looked for in the whole.
    """
    if len(data) < WORTH_FOLDING:
        return list(texts)
    folded = b"\n".join(set(data.translate(None, DIGITS).split(b"\n")))
    return [text for text in texts if text.translate(None, DIGITS) in folded]


def severity_of(signature: Signature, line: Line, match: Match) -> str | None:
    """How bad a find is, by who says it and how; None where it is not what the signature means.

    What an engine tells in passing never is its end; what it warns of costs something, and it goes on.
    """
    if is_talk(line.text, match.begin):
        return None
    if signature.severity == "fatal" and not signature.consequence:
        if line.level in ("DEBUG", "INFO"):
            return None
        if line.level == "WARNING":
            return "slows"
    return None if signature.severity == "fatal" and line.level in ("DEBUG", "INFO") else signature.severity


def _shadowed(line: Line, match: Match, remarks: Iterable[Signature]) -> bool:
    """Whether the find is part of a harmless remark that says more (a port is taken, and another tried)."""
    for remark in remarks:
        known = remark.match(line.text)
        if known is not None and known.begin <= match.begin and match.end <= known.end:
            return True
    return False


def _add(found: dict[str, Found], new: Found, match: Match) -> None:
    """Count a find. What is told are the values and lines of the worst ones."""
    one = found.setdefault(f"{new.program if new.elsewhere else ''}\0{new.signature.id}", new)
    if SEVERITIES.index(new.severity) < SEVERITIES.index(one.severity):
        one.severity, one.lines, one.program = new.severity, [], new.program
        one.position, one.values, one.line = new.position, new.values, new.line
    elif new.severity == one.severity and new.position < one.position:
        one.position, one.values, one.line = new.position, new.values, new.line
    if new.position in one.places:
        return
    one.places.add(new.position)
    one.count += 1
    if new.severity == one.severity:
        one.lines.append((new.position, new.line.text, match.anchor))
        one.lines.sort()
        del one.lines[MOST_EVIDENCE:]


def inside(found: Sequence[Found], texts: Iterable[str]) -> bool:
    """Whether one of the finds is in one of these lines."""
    said = list(texts)
    return any(one.signature.find(text) is not None for one in found for text in said)
