"""Dashboards as Grafana takes them: JSON to import, or for its provisioning from a directory.

Source: the dashboard kind and the panels' options of grafana-foundation-sdk (jsonschema/), which the tests
hold.
"""

from __future__ import annotations

from typing import Any

from boxwright.monitoring.dashboards import Dashboard, Panel, Place, Variable, height, places, units

#: Of the form; Grafana migrates it to its own.
SCHEMA_VERSION = 39
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
_TYPES = {"graph": "timeseries", "stat": "stat"}
_LAST = {"calcs": ["lastNotNull"], "fields": "", "values": False}
_OPTIONS: dict[str, dict[str, Any]] = {
    "graph": {
        "legend": {"showLegend": True, "displayMode": "list", "placement": "bottom", "calcs": []},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    "stat": {
        "reduceOptions": _LAST,
        "orientation": "auto",
        "textMode": "auto",
        "wideLayout": True,
        "colorMode": "none",
        "graphMode": "area",
        "justifyMode": "auto",
        "showPercentChange": False,
        "percentChangeColorMode": "standard",
    },
}
_LINES = {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 10, "showPoints": "never", "spanNulls": False}


def dashboard(one: Dashboard) -> dict[str, Any]:
    """The document of one dashboard."""
    panels: list[dict[str, Any]] = []
    y = 0
    for row in one.rows:
        panels.append(
            {
                "type": "row",
                "title": row.title,
                "collapsed": False,
                "id": len(panels) + 1,
                "gridPos": {"x": 0, "y": y, "w": 24, "h": 1},
                "panels": [],
            }
        )
        for place, panel in zip(places(row.panels), row.panels, strict=True):
            panels.append(_panel(panel, Place(place.x, y + 1 + place.y), len(panels) + 1))
        y += 1 + height(row.panels)
    return {
        "uid": one.name,
        "title": f"Boxwright: {one.title}",
        "tags": ["boxwright"],
        "schemaVersion": SCHEMA_VERSION,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "annotations": {"list": []},
        "templating": {"list": [_SOURCE, *(_variable(variable) for variable in one.variables)]},
        "panels": panels,
    }


_SOURCE = {
    "type": "datasource",
    "name": "datasource",
    "label": "Prometheus",
    "query": "prometheus",
    "hide": 0,
}


def _variable(variable: Variable) -> dict[str, Any]:
    return {
        "type": "query",
        "name": variable.name,
        "label": variable.title,
        "datasource": DATASOURCE,
        "query": f"label_values({variable.of}, {variable.label})",
        # Series come and go: asked again with the range of time.
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
    }


def _panel(panel: Panel, place: Place, number: int) -> dict[str, Any]:
    defaults: dict[str, Any] = {"unit": units()[panel.unit]["grafana"]}
    if panel.unit == "ratio":
        defaults |= {"min": 0, "max": 1}
    if panel.kind == "graph":
        defaults["custom"] = dict(_LINES)
    return {
        "type": _TYPES[panel.kind],
        "title": panel.title,
        "id": number,
        "gridPos": {"x": place.x, "y": place.y, "w": panel.width, "h": panel.height},
        "datasource": DATASOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": _OPTIONS[panel.kind],
        "targets": [
            {
                "refId": chr(ord("A") + at),
                "datasource": DATASOURCE,
                "expr": query.expr,
                "legendFormat": query.legend,
            }
            for at, query in enumerate(panel.queries)
        ],
    }
