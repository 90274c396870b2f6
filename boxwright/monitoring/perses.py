"""Dashboards as Perses takes them: `percli apply -f FILE`, or its provisioning from a directory.

Source: the CUE models of perses/spec (dashboard) and perses/plugins (TimeSeriesChart, StatChart,
PrometheusTimeSeriesQuery, PrometheusLabelValuesVariable).
"""

from __future__ import annotations

from typing import Any

from boxwright.monitoring.dashboards import Dashboard, Panel, Row, Variable, places, units

#: Perses keeps every dashboard in a project.
PROJECT = "boxwright"


def dashboard(one: Dashboard) -> dict[str, Any]:
    """The document of one dashboard."""
    rows = {f"row{number}": row for number, row in enumerate(one.rows)}
    return {
        "kind": "Dashboard",
        "metadata": {"name": one.name, "project": PROJECT},
        "spec": {
            "display": {"name": f"Boxwright: {one.title}"},
            "duration": "6h",
            "refreshInterval": "30s",
            "variables": [_variable(variable) for variable in one.variables],
            "panels": {
                f"{key}-{at}": _panel(panel)
                for key, row in rows.items()
                for at, panel in enumerate(row.panels)
            },
            "layouts": [_grid(key, row) for key, row in rows.items()],
        },
    }


def _variable(variable: Variable) -> dict[str, Any]:
    return {
        "kind": "ListVariable",
        "spec": {
            "name": variable.name,
            "display": {"name": variable.title},
            "allowAllValue": True,
            "allowMultiple": True,
            "customAllValue": ".*",
            "defaultValue": ["$__all"],
            "sort": "alphabetical-asc",
            "plugin": {
                "kind": "PrometheusLabelValuesVariable",
                "spec": {"labelName": variable.label, "matchers": [variable.of]},
            },
        },
    }


def _grid(key: str, row: Row) -> dict[str, Any]:
    items = [
        {
            "x": place.x,
            "y": place.y,
            "width": panel.width,
            "height": panel.height,
            "content": {"$ref": f"#/spec/panels/{key}-{at}"},
        }
        for at, (place, panel) in enumerate(zip(places(row.panels), row.panels, strict=True))
    ]
    return {
        "kind": "Grid",
        "spec": {"display": {"title": row.title, "collapse": {"open": True}}, "items": items},
    }


def _panel(panel: Panel) -> dict[str, Any]:
    return {
        "kind": "Panel",
        "spec": {
            "display": {"name": panel.title},
            "plugin": _STYLES[panel.kind](panel),
            "queries": [
                {
                    "kind": "TimeSeriesQuery",
                    "spec": {
                        "plugin": {
                            "kind": "PrometheusTimeSeriesQuery",
                            "spec": {"query": query.expr, "seriesNameFormat": query.legend},
                        }
                    },
                }
                for query in panel.queries
            ],
        },
    }


def _format(panel: Panel) -> dict[str, Any]:
    unit = units()[panel.unit]["perses"]
    return {"unit": unit, "shortValues": True} if unit in ("decimal", "bytes") else {"unit": unit}


def _graph(panel: Panel) -> dict[str, Any]:
    axis: dict[str, Any] = {"format": _format(panel)}
    if panel.unit == "ratio":
        axis |= {"min": 0, "max": 1}
    visual = {"display": "line", "lineWidth": 1, "areaOpacity": 0.1}
    legend = {"position": "bottom", "mode": "list"}
    return {"kind": "TimeSeriesChart", "spec": {"legend": legend, "yAxis": axis, "visual": visual}}


def _stat(panel: Panel) -> dict[str, Any]:
    spec = {"calculation": "last-number", "format": _format(panel), "sparkline": {}}
    return {"kind": "StatChart", "spec": spec}


_STYLES = {"graph": _graph, "stat": _stat}
