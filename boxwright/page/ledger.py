"""A card's memory as a drawing: a bar of its uses, and what each is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boxwright.page.markup import Markup, tag

GIB, MIB = 1024**3, 1024**2
WIDTH, HEIGHT = 1000, 56
#: Uses in the colours that the style gives to them; others take the last.
COLOURS = {
    "weights": 1,
    "drafter": 2,
    "vision tower": 3,
    "KV cache": 4,
    "sequence state": 5,
    "activations and graphs": 6,
    "driver": 7,
    "left free": 8,
}


def size(count: float) -> str:
    """Bytes as GiB with one decimal, small ones as MiB."""
    return f"{count / GIB:.1f} GiB" if abs(count) >= GIB / 10 else f"{count / MIB:.0f} MiB"


def ledger(card: Mapping[str, Any]) -> Markup:
    """One card's bar and its legend."""
    lines = [line for line in card.get("lines") or () if line.get("bytes", 0) > 0]
    missing = sum(-line["bytes"] for line in card.get("lines") or () if line.get("bytes", 0) < 0)
    whole = max(float(card.get("card_bytes") or 0), sum(line["bytes"] for line in lines), 1.0)
    at, bars = 0.0, []
    for line in lines:
        width = WIDTH * line["bytes"] / whole
        told = f"{line['name']}: {size(line['bytes'])}"
        # A hair of ground between two uses.
        shape = tag("rect", x=f"{at:.1f}", y=0, width=f"{max(1.0, width - 3):.1f}", height=HEIGHT)
        bars.append(tag("g", tag("title", told), shape, class_=colour(line["name"])))
        at += width
    title = f"card {card.get('index')}: {card.get('title')}, {size(float(card.get('card_bytes') or 0))}"
    drawing = tag(
        "svg",
        tag("title", title),
        bars,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        preserveAspectRatio="none",
        role="img",
        class_="ledger",
    )
    rows = [
        tag(
            "li",
            tag("span", class_=f"swatch {colour(line['name'])}"),
            tag("span", tag("b", line["name"]), " ", tag("small", line.get("why") or ""), class_="use"),
            tag("span", size(line["bytes"]), class_="number"),
        )
        for line in lines
    ]
    if missing:
        rows.append(
            tag(
                "li",
                tag("span", class_="swatch missing"),
                tag("span", tag("b", "missing"), " ", tag("small", "more than the card has"), class_="use"),
                tag("span", size(missing), class_="number"),
            )
        )
    return tag("div", tag("h3", title), drawing, tag("ul", rows, class_="legend"), class_="card")


def colour(name: str) -> str:
    """The class of a use."""
    return f"use-{COLOURS.get(name, 6)}"
