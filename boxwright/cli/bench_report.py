"""What a person reads of a benchmark: its points as a table, its setting to the plan, a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from boxwright.bench.comparison import Difference
from boxwright.bench.noise import FEWEST, LEAST, LEVEL, Spread
from boxwright.bench.run import Expectation, Point, Run, expectations
from boxwright.cli.console import say, table, wrapped

NOTHING = "-"
STATISTIC = (
    f"Welch's t-test on the repeats, two-sided, with Holm's correction; a difference is one with p < {LEVEL} "
    f"and medians at least {LEAST:.0%} apart"
)
TITLES = {
    "decode": "decode",
    "output": "all",
    "prefill": "prefill",
    "ttft": "TTFT ms",
    "itl": "ITL ms",
    "acceptance": "drafts",
    "tokens_per_joule": "tok/J",
}
LEGEND = (
    "decode: tokens/s of one sequence; all: of all together; prefill: tokens/s of reading a prompt; TTFT: "
    "time to the first token; ITL: between two; ±: half of what lies between the least and the most repeat"
)


def run(host: str, one: Run, path: str | None) -> None:
    """A whole run."""
    say()
    repeats = max((len(point.repeats) for point in one.points), default=0)
    say(
        wrapped(
            f"{host}: {one.deployment}, release {one.release} ({one.image}): "
            f"medians of {repeats} repeat{'' if repeats == 1 else 's'}",
            hang=2,
        )
    )
    _points("requests at once", [point for point in one.points if point.place.context is None])
    _points("tokens of context", [point for point in one.points if point.place.context is not None])
    say()
    say(wrapped(LEGEND, 2))
    _cards(one)
    told = expectations(one)
    if told:
        say()
        for expected in told:
            say(wrapped(_expected(expected), 2, 2))
    notes = remarks(one)
    if notes:
        say()
        for note in notes:
            say(wrapped(note, 2, 10))
    if path:
        say(f"  kept      {host}:{path}")


def _points(axis: str, points: Sequence[Point]) -> None:
    if not points:
        return
    names = [name for name in TITLES if any(point.spread(name) for point in points)]
    rows = [
        [
            f"{point.place.concurrency if point.place.context is None else point.place.context:,}",
            *(shown(name, point.spread(name)) for name in names),
        ]
        for point in points
    ]
    say()
    table([axis, *(TITLES[name] for name in names)], rows, right=range(len(names) + 1))


def shown(name: str, spread: Spread | None) -> str:
    """A median with half its spread, as a share: `61.2 ±1%`."""
    if spread is None:
        return NOTHING
    if name == "acceptance":
        return f"{spread.median:.0%}"
    if spread.repeats == 1 or not spread.median:
        return _number(spread.median)
    half = (spread.high - spread.low) / 2 / spread.median
    return f"{_number(spread.median)} \N{PLUS-MINUS SIGN}{half:.0%}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 1 else f"{value:.3f}"


def _cards(one: Run) -> None:
    """What the cards did at each point: their clocks, power and heat, and what held them back."""
    rows = [
        [
            point.place.title,
            *(
                NOTHING if (found := point.spread(name)) is None else f"{found.median:,.0f}"
                for name in ("clock", "power", "temperature")
            ),
            ", ".join(f"{reason} {share:.0%}" for reason, share in point.throttled().items()) or NOTHING,
        ]
        for point in one.points
        if point.spread("power") or point.spread("clock")
    ]
    if rows:
        say()
        table(
            ["cards at", "MHz", "W", "\N{DEGREE SIGN}C", "held back by (share of the time)"], rows, (1, 2, 3)
        )


def _expected(one: Expectation) -> str:
    where = "a short context" if one.place.context is None else f"{one.place.context:,} tokens"
    text = (
        f"{one.what} at {where}: {_number(one.measured)} tokens/s is {one.verdict} the plan's "
        f"{_number(one.low)}\N{EN DASH}{_number(one.high)}"
    )
    if one.share is not None and one.ceiling is not None:
        text += f"; {one.share:.0%} of the cards' bandwidth ({_number(one.ceiling)} tokens/s without drafts)"
    return text


def remarks(one: Run) -> list[str]:
    """What must be known of a run beside its figures."""
    found = []
    prompt = sum(point.total("prompt_tokens") for point in one.points)
    known = [point for point in one.points if point.values("cached_tokens")]
    cached = sum(point.total("cached_tokens") for point in known)
    if known:
        text = f"cache     {cached:,} of {prompt:,} prompt tokens came from the prefix cache"
        found.append(text + ("; they are not in the prefill rates" if cached else ""))
    for point in one.points:
        if point.failed:
            found.append(f"failed    {point.place.title}: {point.failed}")
        if point.total("failed"):
            found.append(f"failed    {point.place.title}: {point.total('failed')} requests got no answer")
        others = point.total("strangers")
        if others:
            found.append(
                f"disturbed {point.place.title}: the engine made {others:,} tokens for others meanwhile"
            )
        if point.total("preemptions"):
            found.append(
                f"crowded   {point.place.title}: {point.total('preemptions')} preemptions, the cache was full"
            )
    if one.left_out:
        found.append(f"left out  {one.left_out} repeats, for which the time did not do (--minutes)")
    return found


def listing(hosts: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """The runs that hosts keep."""
    rows = [
        [host, *(str(one.get(key) or NOTHING) for key in ("deployment", "id", "image"))]
        for host, runs in hosts.items()
        for one in runs
    ]
    if rows:
        table(["host", "deployment", "run", "image"], rows)
    for host, runs in hosts.items():
        if not runs:
            say(f"{host}: no run is kept there; ./invoke bench --host {host} makes one")


def comparison(
    host: str, first: Sequence[Run], second: Sequence[Run], differences: Sequence[Difference]
) -> None:
    """Two sides, a row a figure."""
    say(f"{host}: {_side(first)}  against  {_side(second)}")
    say()
    if not differences:
        say("  they have no place of their sweeps in common")
        return
    rows = [
        [
            one.place.title,
            TITLES[one.figure],
            _number(one.first),
            _number(one.second),
            f"{one.change:+.1%}",
            NOTHING if one.p is None else f"{one.p:.3f}",
            one.verdict,
        ]
        for one in differences
    ]
    table(["at", "figure", "first", "second", "change", "p", "verdict"], rows, right=(2, 3, 4, 5))
    say()
    say(wrapped(f"{STATISTIC}.", 2))
    if any(one.verdict == "unknown" for one in differences):
        say(wrapped(f"unknown: fewer than {FEWEST} repeats on a side; --repeats {FEWEST} or more", 2))


def _side(runs: Sequence[Run]) -> str:
    known = {run.release for run in runs}
    if len(runs) == 1:
        return runs[0].id
    return f"{len(runs)} runs of release {' and '.join(sorted(known))}"
