"""What the doctor says: diagnoses, each with its evidence, in the order in which they matter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

#: Width of a line of evidence.
WIDTH = 100


@dataclass(frozen=True)
class Evidence:
    """A line that shows it. source: which log. line: its number there, None for what is no line."""

    source: str
    line: int | None
    text: str

    def to_json(self) -> dict[str, Any]:
        """By stable keys."""
        return {"source": self.source, "line": self.line, "text": self.text}


@dataclass(frozen=True)
class Diagnosis:
    """One thing that was found.

    id: of the signature, `unknown` for an error that none describes. severity: fatal, slows or harmless.
    because: id of the diagnosis that it follows from. count: how often it was seen. past: seen before the
    engine that serves now was started. link: where it is described in public. program: another one than the
    engine's that says it, empty where the engine or what it stands on does.
    """

    id: str
    severity: str
    cause: str
    fix: tuple[str, ...]
    link: str | None
    evidence: tuple[Evidence, ...]
    count: int = 1
    values: Mapping[str, str] = field(default_factory=dict)
    because: str | None = None
    past: bool = False
    program: str = ""

    def to_json(self) -> dict[str, Any]:
        """By stable keys."""
        return {
            "id": self.id,
            "severity": self.severity,
            "cause": self.cause,
            "fix": list(self.fix),
            "link": self.link,
            "count": self.count,
            "values": dict(self.values),
            "because": self.because,
            "past": self.past,
            "program": self.program or None,
            "evidence": [one.to_json() for one in self.evidence],
        }


@dataclass(frozen=True)
class Report:
    """All that was found.

    causes: most likely root first. consequences: what follows from them. others: faults of other programs in
    the same log, which are none of the engine's.
    """

    causes: tuple[Diagnosis, ...] = ()
    consequences: tuple[Diagnosis, ...] = ()
    harmless: tuple[Diagnosis, ...] = ()
    others: tuple[Diagnosis, ...] = ()

    @property
    def verdict(self) -> str:
        """fatal, slows or fine."""
        now = [one.severity for one in self.causes if not one.past]
        return "fatal" if "fatal" in now else "slows" if now else "fine"

    def on(self, host: str) -> Report:
        """The report with commands that can be copied: the host's name where they say NAME."""

        def named(found: tuple[Diagnosis, ...]) -> tuple[Diagnosis, ...]:
            return tuple(
                replace(one, fix=tuple(way.replace("--host NAME", f"--host {host}") for way in one.fix))
                for one in found
            )

        return Report(named(self.causes), named(self.consequences), named(self.harmless), self.others)

    def to_json(self) -> dict[str, Any]:
        """By stable keys."""
        return {
            "verdict": self.verdict,
            "causes": [one.to_json() for one in self.causes],
            "consequences": [one.to_json() for one in self.consequences],
            "harmless": [one.to_json() for one in self.harmless],
            "others": [one.to_json() for one in self.others],
        }
