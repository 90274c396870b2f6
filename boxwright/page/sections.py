"""The page's sections. Each is None where there is nothing to show."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from boxwright.bench.picture import HIGH, NOTE, WIDE, charts
from boxwright.bench.run import Run, expectations
from boxwright.doctor.diagnosis import Diagnosis, Report
from boxwright.doctor.glance import CardNow, DeploymentNow, Glance
from boxwright.facts.runs import KILLED, OPEN, RUNNING, PastRun
from boxwright.page.ledger import ledger
from boxwright.page.markup import Markup, tag

NOTHING = "\N{EN DASH}"
STATES = {"serving": "good", "loading": "fair", "drifted": "fair", "stopped": "bad", "failed": "bad"}
SEVERITIES = {"fatal": "bad", "slows": "fair", "harmless": "plain"}
OUTCOMES = {"ok": "good", "failed": "bad", "refused": "fair", KILLED: "bad", RUNNING: "plain", OPEN: "plain"}
VERDICTS = {"below": "bad", "within": "good", "above": "good"}
#: The most that is shown of each, the newest or likeliest first.
MOST_RUNS, MOST_FINDINGS, MOST_EVIDENCE = 20, 12, 2


def counted(count: int, what: str) -> str:
    """`1 card`, `2 cards`."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def deployments(glance: Glance) -> Markup | None:
    """What the box serves, and how busy that is."""
    if not glance.deployments:
        return None
    return _section("Serving", [_deployment(one) for one in glance.deployments])


def _deployment(one: DeploymentNow) -> Markup:
    load = None if one.running is None else f"{one.running} + {one.waiting or 0}"
    tiles = (
        ("tokens a second", None if one.tokens_per_s is None else f"{one.tokens_per_s:,.1f}", None),
        ("requests, running + waiting", load, None),
        ("KV cache in use", _share(one.kv_usage), one.kv_usage),
        ("drafts accepted", _share(one.acceptance), one.acceptance),
        ("context", None if one.context is None else f"{one.context:,}", None),
        ("up", _lasting(one.uptime_s), None),
    )
    return tag(
        "article",
        tag(
            "div",
            tag("h3", one.name),
            tag("span", one.state, class_=f"chip {STATES.get(one.state, 'plain')}"),
            class_="title",
        ),
        tag("p", one.what, class_="what") if one.what else None,
        tag("p", f"Not as its release says: {'; '.join(one.drift)}", class_="what") if one.drift else None,
        tag(
            "dl",
            [
                tag(
                    "div",
                    tag("dt", name),
                    tag("dd", value),
                    _meter(share) if share is not None else None,
                    class_="tile",
                )
                for name, value, share in tiles
                if value is not None
            ],
            class_="tiles",
        ),
        _facts((("model", one.model), ("release", one.release), ("image", one.image))),
        class_="card",
    )


def cards(glance: Glance) -> Markup | None:
    """The cards, with what they draw and hold."""
    if not glance.cards and not glance.cards_problem:
        return None
    problem = f"The cards do not all answer: {glance.cards_problem}." if glance.cards_problem else None
    return _section(
        "Cards",
        tag("p", problem, class_="what") if problem else None,
        tag("div", [_card(one) for one in glance.cards], class_="grid"),
    )


def _card(one: CardNow) -> Markup:
    name = (one.name or "unknown card").removeprefix("NVIDIA ").removeprefix("GeForce ")
    rows = (
        ("memory", one.memory_used, one.memory_total, "MiB"),
        ("power", one.power, one.power_limit, "W"),
        ("busy", one.utilization, 100, "%"),
    )
    return tag(
        "article",
        tag("div", tag("h3", name), tag("span", f"card {one.index}", class_="aside"), class_="title"),
        tag(
            "div",
            tag("span", NOTHING if one.temperature is None else f"{one.temperature} °C", class_="big"),
            tag("span", NOTHING if one.clock is None else f"{one.clock:,} MHz", class_="big"),
            class_="pair",
        ),
        [_gauge(what, value, most, unit) for what, value, most, unit in rows if value is not None],
        class_="card",
    )


def _gauge(what: str, value: float, most: float | None, unit: str) -> Markup:
    of = f" of {most:,.0f}" if most and unit != "%" else ""
    return tag(
        "div",
        tag("span", what),
        tag("span", f"{value:,.0f}{of} {unit}", class_="number"),
        _meter(value / most) if most else None,
        class_="gauge",
    )


def _meter(share: float) -> Markup:
    """A bar of a share; what it says stands beside it as a number."""
    width = 100 * min(1.0, max(0.0, share))
    bar = tag("rect", class_="full", width=f"{width:.1f}", height=6, rx=3)
    ground = tag("rect", class_="ground", width=100, height=6, rx=3)
    return tag(
        "svg",
        ground,
        bar,
        class_="meter",
        viewBox="0 0 100 6",
        preserveAspectRatio="none",
        aria_hidden="true",
    )


def findings(report: Report, plan: Mapping[str, Any] | None) -> Markup | None:
    """What the doctor and the plan say, the likeliest cause first."""
    told = [_finding(one) for one in report.causes[:MOST_FINDINGS]]
    for kind, word, tone in (("gates", "refused", "bad"), ("advice", "advice", "fair")):
        told += [
            _note(
                str(one.get("id")),
                tone,
                str(one.get("message")),
                [str(way) for way in one.get("fix") or ()],
                word,
            )
            for one in (plan or {}).get(kind) or ()
        ]
    if not told:
        told = [tag("p", "Nothing is wrong that the doctor knows of.", class_="well")]
    more = len(report.causes) - MOST_FINDINGS
    if more > 0:
        told.append(tag("p", f"and {more} more", class_="aside"))
    return _section("Doctor", told)


def _finding(one: Diagnosis) -> Markup:
    tone = "plain" if one.past else SEVERITIES.get(one.severity, "plain")
    seen = [tag("code", found.text) for found in one.evidence[:MOST_EVIDENCE]]
    return _note(one.id, tone, one.cause, one.fix, "earlier" if one.past else one.severity, seen)


def _note(
    title: str,
    tone: str,
    text: str,
    ways: Sequence[str],
    word: str,
    seen: Sequence[Markup] = (),
) -> Markup:
    return tag(
        "article",
        tag(
            "div",
            tag("h3", title),
            tag("span", word, class_=f"chip {tone}"),
            class_="title",
        ),
        tag("p", text),
        tag("ul", [tag("li", way) for way in ways], class_="ways") if ways else None,
        tag("div", seen, class_="evidence") if seen else None,
        class_=f"card note {tone}",
    )


def memory(plan: Mapping[str, Any] | None) -> Markup | None:
    """Where the cards' memory goes, card by card; those alike once."""
    drawn: list[Markup] = []
    for one in (plan or {}).get("deployments") or ():
        known: list[Any] = []
        for card in (one.get("memory") or {}).get("cards") or ():
            uses = [(line["name"], line["bytes"]) for line in card.get("lines") or ()]
            if uses not in known:
                known.append(uses)
                drawn.append(ledger(card))
    return _section("Memory, as planned", drawn) if drawn else None


def benches(runs: Sequence[Run]) -> Markup | None:
    """The last benchmark of each deployment."""
    return _section("Speed, as measured", [_bench(one) for one in runs]) if runs else None


def _bench(run: Run) -> Markup:
    drawings = [
        tag("svg", Markup(chart), viewBox=f"0 0 {WIDE} {HIGH}", role="img", class_="chart")
        for chart in charts(run)
        if "not measured" not in chart
    ]
    rows = [
        tag(
            "li",
            tag("span", tag("b", one.what), f" at {one.place.title}"),
            tag("span", f"{one.measured:,.1f} tok/s", class_="number"),
            tag(
                "span",
                f"{one.verdict} {one.low:,.0f}\N{EN DASH}{one.high:,.0f}",
                class_=f"chip {VERDICTS.get(one.verdict, 'plain')}",
            ),
        )
        for one in expectations(run)
    ]
    return tag(
        "article",
        tag(
            "div",
            tag("h3", run.deployment),
            tag("span", run.made.replace("T", " ").replace("Z", " UTC"), class_="aside"),
            class_="title",
        ),
        tag("div", drawings, class_="charts"),
        tag("p", NOTE, class_="aside"),
        tag("ul", rows, class_="measured") if rows else None,
        _facts((("release", run.release), ("image", run.image))),
        class_="card",
    )


def history(runs: Sequence[PastRun]) -> Markup | None:
    """What ran on the box, the newest first."""
    if not runs:
        return None
    rows = [_past(one) for one in runs[:MOST_RUNS]]
    more = len(runs) - MOST_RUNS
    return _section(
        "History",
        tag("ol", rows, class_="card runs"),
        tag("p", f"and {more} before", class_="aside") if more > 0 else None,
    )


def _past(one: PastRun) -> Markup:
    told = [f"{role} {count}" for role, count in one.changed.items()]
    told += [
        f"{step.deployment}: {step.before or 'none'} \N{RIGHTWARDS ARROW} {step.after}"
        for step in one.releases
    ]
    if one.failure:
        told.append(f"{one.failure.role or one.failure.task}: {one.failure.message}")
    took = "" if one.seconds is None else f", {_lasting(one.seconds)}"
    return tag(
        "li",
        tag("time", time.strftime("%Y-%m-%d %H:%M", time.gmtime(one.begun)) + " UTC"),
        tag("span", tag("b", " ".join([one.verb, *one.options])), f" by {one.by}{took}", class_="who"),
        tag("span", one.outcome, class_=f"chip {OUTCOMES.get(one.outcome, 'plain')}"),
        tag("p", "; ".join(told)) if told else None,
    )


def _section(title: str, *children: object) -> Markup:
    return tag("section", tag("h2", title), *children)


def _facts(pairs: Sequence[tuple[str, str | None]]) -> Markup | None:
    shown = [tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs if value]
    return tag("dl", shown, class_="facts") if shown else None


def _share(value: float | None) -> str | None:
    return None if value is None else f"{value:.0%}"


def _lasting(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f} {unit}"
    return f"{seconds:.0f} s"
