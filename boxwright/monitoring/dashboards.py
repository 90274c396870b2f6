"""The dashboards as data: what is shown, in which order and unit, whichever program draws it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

_DATA = Path(__file__).with_name("data") / "dashboards.yml"
#: Columns of a dashboard, and the rows of them that a panel is high.
COLUMNS = 24
HEIGHTS = {"stat": 4, "graph": 8}


@dataclass(frozen=True)
class Query:
    """One or more lines of a panel. expr: PromQL. legend: what to call them, with `{{label}}`."""

    expr: str
    legend: str


@dataclass(frozen=True)
class Panel:
    """One picture. kind: `graph` over time or `stat`, the last value. unit: a name of `units()`."""

    title: str
    unit: str
    queries: tuple[Query, ...]
    kind: str = "graph"
    width: int = 12

    @property
    def height(self) -> int:
        """In rows of the grid."""
        return HEIGHTS[self.kind]


@dataclass(frozen=True)
class Row:
    """Panels under one heading."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Variable:
    """A choice above the dashboard: the values of a label of some series."""

    name: str
    title: str
    label: str
    of: str


@dataclass(frozen=True)
class Dashboard:
    """One page of panels."""

    name: str
    title: str
    variables: tuple[Variable, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Place:
    """Where a panel stands, in columns and rows of the grid, from its row's upper left corner."""

    x: int
    y: int


@cache
def dashboards() -> tuple[Dashboard, ...]:
    """All of them, in order."""
    return tuple(
        Dashboard(
            one["name"],
            one["title"],
            tuple(Variable(**variable) for variable in one["variables"]),
            tuple(Row(row["title"], tuple(_panel(panel) for panel in row["panels"])) for row in one["rows"]),
        )
        for one in _document()["dashboards"]
    )


@cache
def units() -> Mapping[str, Mapping[str, str]]:
    """Unit -> program (`grafana`, `perses`) -> what it calls it."""
    found: Mapping[str, Mapping[str, str]] = _document()["units"]
    return found


def places(panels: Sequence[Panel]) -> list[Place]:
    """Where the panels of a row stand: from left to right, a new line where the width is used up."""
    found, x, y, highest = [], 0, 0, 0
    for panel in panels:
        if x + panel.width > COLUMNS:
            x, y, highest = 0, y + highest, 0
        found.append(Place(x, y))
        x, highest = x + panel.width, max(highest, panel.height)
    return found


def height(panels: Sequence[Panel]) -> int:
    """Rows of the grid that the panels of a row take together."""
    return max(place.y + panel.height for place, panel in zip(places(panels), panels, strict=True))


@cache
def _document() -> Mapping[str, Any]:
    found: Mapping[str, Any] = yaml.safe_load(_DATA.read_text(encoding="utf-8"))
    return found


def _panel(value: Mapping[str, Any]) -> Panel:
    queries = tuple(Query(one["expr"], one["legend"]) for one in value["queries"])
    return Panel(**{**value, "queries": queries})
