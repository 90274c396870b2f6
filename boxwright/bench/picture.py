"""A run of the benchmark as a picture: an SVG of four small charts, readable on light and dark ground."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from boxwright.bench.run import Expectation, Point, Run, expectations

WIDTH, HEIGHT = 960, 640
#: One chart, and where its axes are in it.
WIDE, HIGH = 480, 290
LEFT, RIGHT, TOP, BOTTOM = 64, 20, 40, 50
#: Longest title, in characters; the whole one is the picture's own title.
LONGEST_TITLE = 112
_DIGEST = re.compile(r"(@sha256:[0-9a-f]{12})[0-9a-f]{20,}")
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #333 } .title { font-weight: 600; font-size: 13px }
.ground { fill: #fff } .grid { stroke: #ddd } .line { fill: none; stroke: #2563eb; stroke-width: 2 }
.dot { fill: #2563eb } .ends { stroke: #2563eb; stroke-width: 1.5 } .plan { stroke: #d97706; stroke-width: 6;
stroke-opacity: .35 } .note { fill: #777 }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .ground { fill: #161616 } .grid { stroke: #3a3a3a }
.line, .ends { stroke: #7aa2ff } .dot { fill: #7aa2ff } .note { fill: #999 } }
"""


#: What the marks of a chart are.
NOTE = "dots: medians; lines through them: least and most of the repeats; broad bars: what the plan said"


@dataclass(frozen=True)
class Mark:
    """One point of a chart. low, high: its spread; plan: the range that the plan said."""

    at: float
    value: float
    low: float
    high: float
    plan: tuple[float, float] | None = None


def svg(run: Run) -> str:
    """The whole picture."""
    title = f"{run.deployment}, release {run.release}, {run.made}, {run.image}"
    shown = fitting(_DIGEST.sub("\\1\N{HORIZONTAL ELLIPSIS}", title), LONGEST_TITLE)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        f'<rect class="ground" width="{WIDTH}" height="{HEIGHT}"/>',
        f'<text class="title" x="16" y="26">{escape(shown)}</text>',
    ]
    for number, chart in enumerate(charts(run)):
        x, y = number % 2 * WIDE, 40 + number // 2 * HIGH
        parts += [f'<g transform="translate({x} {y})">', chart, "</g>"]
    parts.append(f'<text class="note" x="16" y="{HEIGHT - 8}">{NOTE}</text></svg>')
    return "\n".join(parts) + "\n"


def fitting(text: str, most: int) -> str:
    """The text, or what fits of it: a drawing breaks no lines. most: characters."""
    return text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


def charts(run: Run) -> list[str]:
    """The four charts, each for a ground of WIDE by HIGH; whoever shows them says how they look."""
    told = expectations(run)
    prompts = [point for point in run.points if point.place.context is None]
    contexts = [point for point in run.points if point.place.context is not None]
    drawn = (
        ("Tokens a second, all sequences", "requests at once", _marks(prompts, "output", _concurrency)),
        ("Tokens a second, one sequence", "requests at once", _marks(prompts, "decode", _concurrency, told)),
        ("Decoding, tokens a second", "tokens of context", _marks(contexts, "decode", _context, told)),
        ("Reading a prompt, tokens a second", "tokens of context",
         _marks(contexts, "prefill", _context, told)),
    )  # fmt: skip
    return ["\n".join(_chart(name, axis, marks)) for name, axis, marks in drawn]


def _concurrency(point: Point) -> float:
    return float(point.place.concurrency)


def _context(point: Point) -> float:
    return float(point.place.context or 0)


def _marks(
    points: Sequence[Point], name: str, at: Callable[[Point], float], told: Sequence[Expectation] = ()
) -> list[Mark]:
    plans = {one.place: (one.low, one.high) for one in told if one.what == name}
    found = [
        Mark(at(point), spread.median, spread.low, spread.high, plans.get(point.place))
        for point in points
        if (spread := point.spread(name))
    ]
    return sorted(found, key=lambda mark: mark.at)


def _chart(name: str, axis: str, marks: Sequence[Mark]) -> list[str]:
    """One chart: steps of the sweep evenly apart (they double), rates from zero."""
    parts = [f'<text class="title" x="{LEFT}" y="24">{escape(name)}</text>']
    if not marks:
        return [*parts, f'<text class="note" x="{LEFT}" y="{HIGH / 2:.0f}">not measured</text>']
    step, count = _step(max(max(mark.high, *(mark.plan or (0,))) for mark in marks))
    most = step * count
    inner, tall = WIDE - LEFT - RIGHT, HIGH - TOP - BOTTOM

    def down(value: float) -> float:
        return TOP + tall * (1 - value / most)

    def across(number: int) -> float:
        return LEFT + inner * (number + 0.5) / len(marks)

    for line in range(count + 1):
        y = down(line * step)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDE - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{line * step:,g}</text>')
    places = [(across(number), mark) for number, mark in enumerate(marks)]
    for x, mark in places:
        if mark.plan:
            parts.append(_upright("plan", x, down(mark.plan[0]), down(mark.plan[1])))
    corners = " ".join(f"{x:.1f},{down(mark.value):.1f}" for x, mark in places)
    parts.append(f'<polyline class="line" points="{corners}"/>')
    for x, mark in places:
        parts.append(_upright("ends", x, down(mark.low), down(mark.high)))
        parts.append(
            f'<circle class="dot" cx="{x:.1f}" cy="{down(mark.value):.1f}" r="4">'
            f"<title>{mark.value:,.1f}</title></circle>"
        )
        parts.append(f'<text x="{x:.1f}" y="{HIGH - BOTTOM + 18}" text-anchor="middle">{mark.at:,.0f}</text>')
    middle = LEFT + inner / 2
    parts.append(
        f'<text class="note" x="{middle:.0f}" y="{HIGH - 8}" text-anchor="middle">{escape(axis)}</text>'
    )
    return parts


def _upright(kind: str, x: float, low: float, high: float) -> str:
    return f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}"/>'


def _step(most: float) -> tuple[float, int]:
    """A round distance of grid lines, and how many of them reach beyond `most`."""
    if most <= 0:
        return 1.0, 1
    rough = most / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return step, max(1, math.ceil(most / step))
