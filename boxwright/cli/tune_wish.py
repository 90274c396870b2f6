"""What is asked of a tuning, checked before any box is looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from boxwright.bench.run import Place, prompts
from boxwright.cli import benching
from boxwright.cli.words import whole
from boxwright.errors import EXIT_BAD_INPUT, UserError
from boxwright.spec.suggestions import nearest
from boxwright.texts import printable
from boxwright.tuner.proposals import KINDS, OF_CARDS
from boxwright.tuner.trial import Goal

MOST_CANDIDATES = 200
#: Seconds that the measurement of one candidate may take, whatever the time for all of them is.
MEASURE_S = 600
#: What is to become better: the figure of the benchmark.
OBJECTIVES = {
    "decode": "decode",
    "throughput": "output",
    "prefill": "prefill",
    "tokens_per_joule": "tokens_per_joule",
}
DEFAULT_CONTEXT = 2048


@dataclass(frozen=True)
class Asked:
    """What was asked for, checked. bench: variables of a measurement, without its load."""

    candidates: int
    minutes: int
    objective: str
    concurrency: int | None
    context: int | None
    bench: Mapping[str, Any]
    fresh: bool
    picture: str
    as_json: bool

    def measured_at(self, load: int) -> tuple[Goal, dict[str, Any]]:
        """The goal and a measurement's variables. load: requests at once, where none was asked for."""
        at_once = self.concurrency or (1 if self.objective in ("decode", "prefill") else load)
        if self.objective == "prefill":
            at_once, context = 1, self.context or DEFAULT_CONTEXT
            points: dict[str, Any] = {"bench_concurrencies": [0], "bench_contexts": [context]}
            place = Place(1, context)
        else:
            points = {"bench_concurrencies": [at_once], "bench_contexts": [0]}
            place = Place(at_once, None)
        return Goal(self.objective, OBJECTIVES[self.objective], place), {**self.bench, **points}


def asked(
    *,
    candidates: str = "8",
    minutes: str = "60",
    objective: str = "decode",
    concurrency: str = "",
    context: str = "",
    repeats: str = "3",
    output: str = "128",
    fresh: bool = False,
    picture: str = "",
    as_json: bool = False,
) -> Asked:
    """The options of both ways to tune. Raises UserError for what is no number, or no objective."""
    if objective not in OBJECTIVES:
        raise UserError(
            f'--objective: "{printable(objective)}" is none',
            status=EXIT_BAD_INPUT,
            ways_out=(f"one of: {', '.join(OBJECTIVES)}",),
        )
    if context and objective != "prefill":
        raise UserError(
            f"--context is the length of the prompts for --objective prefill, not for {objective}",
            status=EXIT_BAD_INPUT,
        )
    limit = whole("--minutes", minutes, benching.MOST_MINUTES)
    return Asked(
        candidates=whole("--candidates", candidates, MOST_CANDIDATES),
        minutes=limit,
        objective=objective,
        concurrency=whole("--concurrency", concurrency, benching.MOST_CONCURRENCY) if concurrency else None,
        context=whole("--context", context, benching.MOST_CONTEXT) if context else None,
        bench={
            "bench_prompts": list(prompts()),
            "bench_repeats": whole("--repeats", repeats, benching.MOST_REPEATS),
            "bench_output_tokens": whole("--output", output, benching.MOST_OUTPUT),
            "bench_limit_s": min(MEASURE_S, 60 * limit),
        },
        fresh=fresh,
        picture=picture,
        as_json=as_json,
    )


def refuse_what(what: str) -> None:
    """A bisection varies what its two sides differ in. Raises UserError where something else is asked for."""
    if what:
        raise UserError(
            "--what is not for --bisect, which varies what the two sides differ in", status=EXIT_BAD_INPUT
        )


def refuse_sides(good: str, bad: str) -> None:
    """Sides are a bisection's. Raises UserError where they are given without it."""
    if good or bad not in ("", "declared"):
        raise UserError(
            "--good and --bad are the two sides of --bisect", status=EXIT_BAD_INPUT, ways_out=("--bisect",)
        )


def kinds(what: str, wanted: Asked) -> list[str]:
    """What is to be varied. Raises UserError for what cannot be."""
    if not what.strip():
        # A limit of the cards never makes them faster, it may make them do with less; and how many sequences
        # are worked on at once says nothing to a single one.
        frugal = wanted.objective == "tokens_per_joule"
        several = wanted.objective in ("throughput", "tokens_per_joule") or (wanted.concurrency or 1) > 1
        left_out = {*(() if frugal else OF_CARDS), *(() if several else ("sequences",))}
        return [kind for kind in KINDS if kind not in left_out]
    words = [word.strip().replace("-", "_") for word in what.split(",") if word.strip()]
    wrong = next((word for word in words if word not in KINDS), None)
    if wrong is not None or not words:
        guess = nearest(wrong or "", KINDS)
        raise UserError(
            f'--what: "{printable(wrong or what)}" cannot be varied',
            status=EXIT_BAD_INPUT,
            ways_out=(
                f"one or more of {', '.join(KINDS)}" + (f' (did you mean "{guess}"?)' if guess else ""),
            ),
        )
    return words
