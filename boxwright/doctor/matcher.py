"""Finding signatures in logs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from boxwright.doctor.log import Log, Place
from boxwright.doctor.signature import Signature
from boxwright.facts.parsers.log_lines import Line

#: Bytes from which on a log is folded before it is searched.
WORTH_FOLDING = 1 << 20
DIGITS = b"0123456789"
#: Lines of evidence that are kept of each find.
MOST_EVIDENCE = 3
#: Places whose texts do not begin anew with a start of an engine.
OF_THE_HOST = frozenset(("kernel", "nvidia-smi"))
#: What a request's text stands in: whoever asks could write any error into it.
_REQUEST = re.compile(r"^(Received request |Generated response |Receive: obj=|Finish: obj=)")
_VERSION = re.compile(
    rb"(?:vLLM (?:API )?server version |Initializing a V\d LLM engine \(v?)(\d{1,4}\.\d{1,4}\.\d{1,4})"
)


@dataclass
class Found:
    """A signature in a log. position: the byte of its first line."""

    signature: Signature
    log: Log
    position: int
    values: Mapping[str, str]
    line: Line
    lines: list[tuple[int, str]] = field(default_factory=list)
    places: set[int] = field(default_factory=set)
    count: int = 0


def versions_in(data: bytes) -> dict[str, str]:
    """Versions of engines that a log names: its last one."""
    known = [found.group(1).decode() for found in _VERSION.finditer(data)]
    return {"vllm": known[-1]} if known else {}


def find(log: Log, signatures: Iterable[Signature], versions: Mapping[str, str] | None = None) -> list[Found]:
    """All signatures that are in a log, in the order of their first line."""
    known = versions_in(log.data) if versions is None else versions
    first = log.begin()
    by_anchor: dict[bytes, list[Signature]] = {}
    for signature in signatures:
        if (
            signature.texts
            and signature.covers(known)
            and (not log.kinds or log.kinds.intersection(signature.where))
        ):
            for text in signature.texts:
                by_anchor.setdefault(text.anchor.encode(), []).append(signature)
    found: dict[str, Found] = {}
    for anchor in present(log.data, by_anchor):
        wanted = by_anchor[anchor]
        for place in log.finds(anchor):
            line = log.text(place)
            for signature in wanted:
                if place.start < first and not OF_THE_HOST.issuperset(signature.where):
                    continue
                values = signature.find(line.text)
                if values is not None and _counts(signature, line):
                    _add(found, signature, log, place, line, values)
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


def _counts(signature: Signature, line: Line) -> bool:
    """Whether a line can be what the signature means: what an engine tells in passing never is its end."""
    if _REQUEST.match(line.text):
        return False
    return not (signature.severity == "fatal" and line.level in ("DEBUG", "INFO"))


def _add(
    found: dict[str, Found],
    signature: Signature,
    log: Log,
    place: Place,
    line: Line,
    values: Mapping[str, str],
) -> None:
    one = found.get(signature.id)
    if one is None:
        one = found[signature.id] = Found(signature, log, place.start, values, line)
    elif place.start < one.position:
        one.position, one.values, one.line = place.start, values, line
    if place.start in one.places:
        return
    one.places.add(place.start)
    one.count += 1
    one.lines.append((place.start, line.text))
    one.lines.sort()
    del one.lines[MOST_EVIDENCE:]


def inside(found: Sequence[Found], texts: Iterable[str]) -> bool:
    """Whether one of the finds is in one of these lines."""
    said = list(texts)
    return any(one.signature.find(text) is not None for one in found for text in said)
