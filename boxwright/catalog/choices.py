"""What recommendations compare, and what they go by (data/choices.yml, data/limits.yml)."""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import sqrt
from typing import Any

from boxwright.catalog import reading
from boxwright.catalog.architecture import Architecture


@dataclass(frozen=True)
class Choices:
    """The choices to compare.

    images: in the order in which they are tried. speculative: (method, tokens; None for the drafter's own).
    trials: models that are compared only when asked for. size_classes: bounds in 10^9 parameters. doubtful:
    ids of advice. fast_enough: tokens a second at the low end of a range.
    context, concurrency, sequence: the wish of who says none, in tokens and sequences.
    """

    images: tuple[str, ...]
    kv_cache: tuple[str, ...]
    speculative: tuple[tuple[str, int | None], ...]
    trials: frozenset[str]
    size_classes: tuple[float, ...]
    doubtful: frozenset[str]
    fast_enough: float
    context: int
    concurrency: int
    sequence: int
    most_sequences: int
    driver_branches: Mapping[str, str]

    def size_class(self, architecture: Architecture) -> int:
        """The model's class by its effective size; a larger class is a better model."""
        return bisect.bisect_left(self.size_classes, effective_parameters(architecture) / 1e9)

    def driver_branch(self, system: str, version: str) -> str:
        """The branch to install on a distribution's release."""
        return self.driver_branches.get(f"{system}-{version}") or self.driver_branches["default"]


def effective_parameters(architecture: Architecture) -> float:
    """Parameters; of a model of experts the geometric mean of all and the active ones."""
    if architecture.experts is None:
        return float(architecture.parameters)
    return sqrt(architecture.parameters * architecture.active_parameters)


@dataclass(frozen=True)
class Limit:
    """A limit that held on somebody's card. value: W or MHz."""

    value: int
    why: str


@dataclass(frozen=True)
class CardLimits:
    """Limits that a kind of card was run with; None where nobody told one."""

    power_w: Limit | None = None
    clock_mhz: Limit | None = None


@cache
def load() -> Choices:
    """The choices of this installation."""
    data = reading.yaml_file("choices.yml")
    return Choices(
        images=tuple(data["images"]),
        kv_cache=tuple(data["kv_cache"]),
        speculative=tuple((one["method"], one["tokens"]) for one in data["speculative"]),
        trials=frozenset(data["trials"]),
        size_classes=tuple(float(bound) for bound in data["size_classes"]),
        doubtful=frozenset(data["doubtful"]),
        fast_enough=float(data["fast_enough"]),
        context=data["wish"]["context"],
        concurrency=data["wish"]["concurrency"],
        sequence=data["wish"]["sequence"],
        most_sequences=data["most_sequences"],
        driver_branches=data["driver_branch"],
    )


@cache
def limits() -> Mapping[str, CardLimits]:
    """Card -> limits that it was run with."""
    return {
        entry["card"]: CardLimits(_limit(entry.get("power_w")), _limit(entry.get("clock_mhz")))
        for entry in reading.yaml_file("limits.yml")
    }


def _limit(entry: Mapping[str, Any] | None) -> Limit | None:
    return Limit(**entry) if entry else None
