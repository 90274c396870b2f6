"""What was tried as a picture: an SVG with a bar for each setting, readable on light and dark ground."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from boxwright.bench.noise import Spread
from boxwright.bench.picture import fitting
from boxwright.tuner.trial import Goal

WIDTH, TEXT, NUMBER = 960, 380, 110
HIGH, GAP, TOP, BOTTOM = 30, 10, 60, 40
#: Longest label, in characters; the whole one is the bar's title.
LONGEST, LONGEST_TITLE, LONGEST_NOTE = 56, 108, 80
UNITS = {"tokens_per_joule": "tokens per joule"}
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #333 } .title { font-weight: 600; font-size: 14px }
.ground { fill: #fff } .bar { fill: #93b4f5 } .base { fill: #b8b8b8 } .best { fill: #2f9e6e }
.ends { stroke: #333; stroke-width: 1.5 } .note { fill: #666 }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .ground { fill: #161616 } .bar { fill: #44639f }
.base { fill: #6a6a6a } .best { fill: #3cb982 } .ends { stroke: #ddd } .note { fill: #999 } }
"""


@dataclass(frozen=True)
class Bar:
    """One setting. kind: base, best or bar. spread: None where it was not measured; note: why."""

    label: str
    kind: str
    spread: Spread | None
    note: str = ""


def svg(goal: Goal, bars: Sequence[Bar], host: str, deployment: str) -> str:
    """The whole picture."""
    unit = UNITS.get(goal.name, "tokens a second")
    title = f"{host}, {deployment}: {goal.name}, {unit}, {goal.place.title}"
    height = TOP + len(bars) * (HIGH + GAP) + BOTTOM
    most = max((one.spread.high for one in bars if one.spread), default=0.0) or 1.0
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        f'<rect class="ground" width="{WIDTH}" height="{height}"/>',
        f'<text class="title" x="16" y="30">{escape(fitting(title, LONGEST_TITLE))}</text>',
    ]
    for number, one in enumerate(bars):
        parts += _bar(one, TOP + number * (HIGH + GAP), most)
    note = "grey: what it is compared with; green: the best; lines: the least and the most of the repeats"
    parts.append(f'<text class="note" x="16" y="{height - 14}">{note}</text></svg>')
    return "\n".join(parts) + "\n"


def _bar(one: Bar, y: float, most: float) -> list[str]:
    label = fitting(one.label, LONGEST)
    middle = y + HIGH / 2
    parts = [
        f'<text x="{TEXT - 12}" y="{middle + 4:.1f}" text-anchor="end">{escape(label)}'
        f"<title>{escape(one.label)}</title></text>"
    ]
    if one.spread is None:
        note = escape(fitting(one.note, LONGEST_NOTE))
        why = f"{note}<title>{escape(one.note)}</title>"
        return [*parts, f'<text class="note" x="{TEXT}" y="{middle + 4:.1f}">{why}</text>']
    scale = (WIDTH - TEXT - NUMBER) / most
    low, high, wide = (TEXT + value * scale for value in (one.spread.low, one.spread.high, one.spread.median))
    parts += [
        f'<rect class="{one.kind}" x="{TEXT}" y="{y}" width="{wide - TEXT:.1f}" height="{HIGH}" rx="3"/>',
        f'<line class="ends" x1="{low:.1f}" x2="{high:.1f}" y1="{middle}" y2="{middle}"/>',
        f'<text x="{max(high, wide) + 8:.1f}" y="{middle + 4:.1f}">{one.spread.median:,.4g}</text>',
    ]
    return parts
