"""What is known of one fault or remark: how it looks, what it means, what to do."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from boxwright.doctor.condition import Condition, ConditionError
from boxwright.doctor.template import Match, Template, TemplateError
from boxwright.doctor.versions import Versions

#: fatal: nothing serves, or what serves is about to end. slows: it works, worse than it could. harmless: it
#: looks like a fault and is none, so it is to be left alone.
SEVERITIES = ("fatal", "slows", "harmless")
#: Where a text is looked for. readings: not a text but values (metrics, states, facts).
PLACES = ("engine", "unit", "docker", "hub", "nvidia-smi", "kernel", "readings")
_KEYS = frozenset(
    ("id", "where", "text", "when", "only", "never", "severity", "consequence", "explains", "versions",
     "cause", "fix", "source", "example")
)  # fmt: skip


class SignatureError(ValueError):
    """A signature in the data that cannot be used: which one, and why."""


@dataclass(frozen=True)
class Signature:
    """One fault or remark.

    where: places of PLACES. texts: any of them in a line is a find. when: conditions on readings, all of
    which must hold. only, never: how a value of the text must begin, or must not: one of several ways,
    whatever their case. consequence: it only says that something else went wrong. explains: ids of what
    follows from it. cause, fix: with `{values}` of the texts; a fix whose value was not captured is left out.
    example: lines that it matches (for readings: values).
    """

    id: str
    where: tuple[str, ...]
    severity: str
    cause: str
    fix: tuple[str, ...]
    source: str
    example: tuple[Any, ...]
    texts: tuple[Template, ...] = ()
    when: tuple[Condition, ...] = ()
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    never: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    consequence: bool = False
    explains: frozenset[str] = frozenset()
    versions: Mapping[str, Versions] = field(default_factory=dict)

    def find(self, line: str) -> dict[str, str] | None:
        """The values of a line that it matches; None where it does not."""
        found = self.match(line)
        return None if found is None else found.values

    def match(self, line: str) -> Match | None:
        """The first of its texts that is in the line; None where none is."""
        for text in self.texts:
            found = text.match(line)
            if found is not None and self._means(found.values):
                return found
        return None

    def _means(self, values: Mapping[str, str]) -> bool:
        """Whether the values are those that it is about."""
        return all(
            values.get(name, "").lower().startswith(begins) for name, begins in self.only.items()
        ) and not any(values.get(name, "").lower().startswith(begins) for name, begins in self.never.items())

    def holds(self, readings: Mapping[str, Any]) -> bool:
        """Whether all its conditions hold."""
        return bool(self.when) and all(condition.holds(readings) for condition in self.when)

    def covers(self, versions: Mapping[str, str]) -> bool:
        """Whether it is about these versions; one that is not known does not exclude it."""
        return all(
            wanted.contains(versions[engine])
            for engine, wanted in self.versions.items()
            if engine in versions
        )

    def told(self, values: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
        """Cause and fixes in words."""
        known = {name: str(value) for name, value in values.items()}
        fixes = tuple(_fill(fix, known) for fix in self.fix if _names(fix) <= set(known))
        return _fill(self.cause, {**dict.fromkeys(_names(self.cause), "?"), **known}), fixes

    def explained(self) -> tuple[str, tuple[str, ...]]:
        """Cause and fixes without a log: the names of values stand for them, in capitals."""
        names = {name for text in (self.cause, *self.fix) for name in _names(text)}
        return self.told({name: name.upper() for name in names})


def parse(entry: Any, file: str) -> Signature:
    """A signature out of the data. Raises SignatureError."""
    if not isinstance(entry, Mapping):
        raise SignatureError(f"{file}: {entry!r} is no signature")
    name = str(entry.get("id") or "?")
    try:
        return _parse(entry, name)
    except (TemplateError, ConditionError, SignatureError, KeyError, ValueError) as error:
        detail = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise SignatureError(f"{file}: {name}: {detail}") from error


def _parse(entry: Mapping[str, Any], name: str) -> Signature:
    unknown = set(entry) - _KEYS
    if unknown:
        raise SignatureError(f"unknown: {', '.join(sorted(unknown))}")
    where = tuple(_listed(entry["where"]))
    if entry["severity"] not in SEVERITIES or not set(where) <= set(PLACES) or not where:
        raise SignatureError(f"severity is one of {', '.join(SEVERITIES)}, where of {', '.join(PLACES)}")
    texts = tuple(Template(text) for text in _listed(entry.get("text", ())))
    when = tuple(Condition.parse(one) for one in _listed(entry.get("when", ())))
    if bool(texts) == bool(when) or bool(when) != (where == ("readings",)):
        raise SignatureError("it needs text, or when with where: readings")
    known = frozenset.intersection(*(text.names for text in texts)) if texts else _names_of(when)
    if _names(entry["cause"]) - known:
        raise SignatureError(
            f"its cause names what not every text captures: {_names(entry['cause']) - known}"
        )
    beginnings = {
        key: {
            name: tuple(str(one).lower() for one in _listed(ways))
            for name, ways in (entry.get(key) or {}).items()
        }
        for key in ("only", "never")
    }
    if any(set(names) - known for names in beginnings.values()) or (when and any(beginnings.values())):
        raise SignatureError("only and never are about values that every text captures")
    fixes = _listed(entry["fix"])
    captured = frozenset[str]().union(*(text.names for text in texts)) if texts else known
    if any(_names(fix) - captured for fix in fixes):
        raise SignatureError("a fix names a value that no text captures")
    if not str(entry["source"]).startswith("https://") or not _listed(entry["example"]):
        raise SignatureError("it needs a public source (https://…) and an example")
    return Signature(
        id=name,
        where=where,
        severity=entry["severity"],
        cause=" ".join(str(entry["cause"]).split()),
        fix=tuple(" ".join(str(fix).split()) for fix in fixes),
        source=str(entry["source"]),
        example=tuple(_listed(entry["example"])),
        texts=texts,
        when=when,
        only=beginnings["only"],
        never=beginnings["never"],
        consequence=bool(entry.get("consequence", False)),
        explains=frozenset(_listed(entry.get("explains", ()))),
        versions={engine: Versions.parse(text) for engine, text in (entry.get("versions") or {}).items()},
    )


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else [value]


def _names(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(str(text)) if name}


def _names_of(when: Sequence[Condition]) -> frozenset[str]:
    return frozenset(condition.reading for condition in when)


def _fill(text: str, values: Mapping[str, str]) -> str:
    """The text with its values; what a log says is put in as it stands and never read as a format."""
    return "".join(
        literal + (values.get(name, "?") if name else "")
        for literal, name, _, _ in string.Formatter().parse(text)
    )
