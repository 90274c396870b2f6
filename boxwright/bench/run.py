"""A kept run of the benchmark, point by point, and how it stands to what the plan said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from boxwright.bench.figures import COMPARED, KEYS, Figures, figures, mapping, number, sequence
from boxwright.bench.noise import Spread, spread

PROMPTS = "prompts"


@dataclass(frozen=True)
class Place:
    """A place of a sweep. context: tokens of a random prompt; None: the prompts that come with the tool."""

    concurrency: int
    context: int | None

    @property
    def title(self) -> str:
        """As a person calls it."""
        return f"{self.concurrency} at once" if self.context is None else f"{self.context:,} tokens"


@dataclass(frozen=True)
class Point:
    """What was measured at a place. failed: why it was not measured to the end."""

    place: Place
    requests: int
    repeats: tuple[Figures, ...]
    failed: str | None

    def values(self, name: str) -> list[float]:
        """A figure's repeats, without those that do not tell it."""
        return [value for one in self.repeats if (value := getattr(one, name)) is not None]

    def spread(self, name: str) -> Spread | None:
        """A figure's median and ends."""
        return spread(self.values(name))

    def throttled(self) -> dict[str, float]:
        """What held the cards back: reason -> the largest share of any repeat's readings."""
        found: dict[str, float] = {}
        for one in self.repeats:
            for reason, share in one.throttled.items():
                found[reason] = max(found.get(reason, 0.0), share)
        return found

    def total(self, name: str) -> int:
        """A count over all repeats."""
        return int(sum(self.values(name)))

    def to_json(self) -> dict[str, Any]:
        """Plain values by stable keys."""
        told = [*COMPARED, "itl_p99", "power", "clock", "temperature"]
        return {
            **asdict(self.place),
            "requests": self.requests,
            "figures": {
                KEYS[name]: None if (found := self.spread(name)) is None else asdict(found) for name in told
            },
            "prompt_tokens": self.total("prompt_tokens"),
            "cached_tokens": self.total("cached_tokens") if self.values("cached_tokens") else None,
            "output_tokens": self.total("output_tokens"),
            "failed_requests": self.total("failed"),
            "tokens_of_others": self.total("strangers"),
            "throttled": self.throttled(),
            "repeats": [one.to_json() for one in self.repeats],
            "failed": self.failed,
        }


@dataclass(frozen=True)
class Run:
    """One run. facts, plan, options: as they were kept. left_out: repeats for which there was no time."""

    id: str
    deployment: str
    release: str
    image: str
    made: str
    seconds: float | None
    points: tuple[Point, ...]
    left_out: int
    facts: Mapping[str, Any]
    plan: Mapping[str, Any]
    options: Mapping[str, Any]

    def at(self, place: Place) -> Point | None:
        """The point of a place."""
        return next((point for point in self.points if point.place == place), None)

    def to_json(self) -> dict[str, Any]:
        """Plain values by stable keys."""
        names = ("id", "deployment", "release", "image", "made", "seconds", "left_out")
        return {
            **{name: getattr(self, name) for name in names},
            "facts": dict(self.facts),
            "options": dict(self.options),
            "plan": {"speed": self.plan.get("speed")},
            "points": [point.to_json() for point in self.points],
        }


def read(kept: Mapping[str, Any]) -> Run:
    """A run as a host keeps it."""
    return Run(
        id=str(kept.get("id")),
        deployment=str(kept.get("deployment")),
        release=str(kept.get("release")),
        image=str(kept.get("image")),
        made=str(kept.get("made")),
        seconds=number(kept.get("seconds")),
        points=tuple(_point(mapping(point)) for point in sequence(kept.get("points"))),
        left_out=len(sequence(kept.get("left_out"))),
        facts=mapping(kept.get("facts")),
        plan=mapping(kept.get("plan")),
        options=mapping(kept.get("options")),
    )


def _point(kept: Mapping[str, Any]) -> Point:
    concurrency = int(number(kept.get("concurrency")) or 1)
    context = number(kept.get("context"))
    failed = kept.get("failed")
    return Point(
        Place(concurrency, None if context is None else int(context)),
        int(number(kept.get("requests")) or 0),
        tuple(figures(mapping(one), concurrency) for one in sequence(kept.get("repeats"))),
        str(failed) if failed else None,
    )


@dataclass(frozen=True)
class Expectation:
    """A measured rate beside what the plan said of it.

    verdict: below, within or above the range. ceiling: what the cards' bandwidth allows without drafts.
    """

    what: str
    place: Place
    measured: float
    low: float
    high: float
    ceiling: float | None
    verdict: str

    @property
    def share(self) -> float | None:
        """Of the ceiling."""
        return self.measured / self.ceiling if self.ceiling else None

    def to_json(self) -> dict[str, Any]:
        """Plain values by stable keys."""
        return {**asdict(self), "share_of_ceiling": self.share}


def expectations(run: Run) -> list[Expectation]:
    """Where the plan said a range for what was measured: one sequence at a time, at each context.

    The range for a context is the one of the longest told length that is no longer.
    """
    speed = mapping(run.plan.get("speed"))
    ceiling = number(speed.get("decode_ceiling_tokens_per_s"))
    told = [(0, mapping(speed.get("decode_tokens_per_s")))] + [
        (int(number(mapping(one).get("context_tokens")) or 0), mapping(mapping(one).get("tokens_per_s")))
        for one in sequence(speed.get("decode_by_context"))
    ]
    found = []
    for point in run.points:
        if point.place.concurrency != 1:
            continue
        length = point.place.context or 0
        span = [one for tokens, one in sorted(told, key=lambda entry: entry[0]) if tokens <= length][-1]
        found += _expected("decode", point, span, ceiling)
        if point.place.context is not None:
            found += _expected("prefill", point, mapping(speed.get("prefill_tokens_per_s")), None)
    return found


def _expected(what: str, point: Point, span: Mapping[str, Any], ceiling: float | None) -> list[Expectation]:
    measured, low, high = point.spread(what), number(span.get("low")), number(span.get("high"))
    if measured is None or low is None or high is None:
        return []
    value = measured.median
    verdict = "below" if value < low else "above" if value > high else "within"
    return [Expectation(what, point.place, value, low, high, ceiling, verdict)]


def prompts() -> Sequence[str]:
    """The prompts that come with the tool."""
    text = (Path(__file__).parent / "data" / "prompts.yml").read_text(encoding="utf-8")
    return [str(one).strip() for one in yaml.safe_load(text)["prompts"]]
