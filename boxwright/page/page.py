"""The page of a box, from what was seen of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from boxwright.bench.run import Run
from boxwright.doctor.diagnosis import Report
from boxwright.doctor.glance import Glance
from boxwright.facts.runs import PastRun
from boxwright.page import sections
from boxwright.page.markup import Markup, tag

GENERATOR = "Boxwright"


@dataclass(frozen=True)
class Seen:
    """What was seen of a box. made: when, as a clock shows it; plan: its JSON, None where there is none."""

    name: str
    made: str
    version: str
    glance: Glance
    plan: Mapping[str, Any] | None
    report: Report
    benches: Sequence[Run]
    runs: Sequence[PastRun]


def page(seen: Seen) -> str:
    """The whole document."""
    parts = (
        sections.deployments(seen.glance),
        sections.cards(seen.glance),
        sections.findings(seen.report, seen.plan),
        sections.memory(seen.plan),
        sections.benches(seen.benches),
        sections.history(seen.runs),
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="generator", content=GENERATOR),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"{seen.name}: {_verdict(seen)[1]}"),
        tag("style", style()),
    )
    body = tag(
        "body",
        _header(seen),
        tag("main", [part for part in parts if part]),
        tag(
            "footer",
            f"Seen {seen.made} by Boxwright {seen.version}. Secrets, addresses and users are left out.",
        ),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


@cache
def style() -> Markup:
    """The style sheet, which nobody but us writes."""
    return Markup((Path(__file__).parent / "data" / "style.css").read_text(encoding="utf-8"))


def _header(seen: Seen) -> Markup:
    tone, words = _verdict(seen)
    return tag(
        "header",
        tag("div", tag("h1", seen.name), tag("span", words, class_=f"chip {tone}"), class_="title"),
        tag("p", " · ".join(_summary(seen)), class_="summary"),
    )


def _verdict(seen: Seen) -> tuple[str, str]:
    """The tone and the words of how the box fares."""
    states = [one.state for one in seen.glance.deployments]
    if any(state in ("failed", "stopped") for state in states) or seen.glance.cards_problem:
        return "bad", "needs attention"
    if seen.report.verdict == "fatal":
        return "bad", "needs attention"
    for state in ("loading", "drifted"):
        if state in states:
            return "fair", state
    if not states:
        return "fair", "serves nothing"
    return ("fair", "serving, with remarks") if seen.report.verdict == "slows" else ("good", "serving")


def _summary(seen: Seen) -> list[str]:
    glance = seen.glance
    found = [
        sections.counted(len(glance.deployments), "deployment"),
        sections.counted(len(glance.cards), "card"),
    ]
    drivers = sorted({one.driver for one in glance.cards if one.driver})
    if drivers:
        found.append(f"driver {', '.join(drivers)}")
    if glance.drifted is not None:
        found.append(f"{len(glance.drifted)} drifted" if glance.drifted else "as it was left")
    return found
