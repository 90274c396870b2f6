"""One source, two programs: both are given the same, in forms that their own schemas take.

Grafana's schemas are those of grafana-foundation-sdk f178d5a4 (Apache-2.0), without their descriptions.
Perses publishes CUE models; recorded/perses-dashboard.schema.json says the same as JSON Schema.
"""

import copy
import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from boxwright.monitoring import grafana, perses
from boxwright.monitoring.dashboards import COLUMNS, dashboards, height, places, units

ROOT = Path(__file__).resolve().parents[3]
RECORDED = Path(__file__).with_name("recorded")
RULES = yaml.safe_load((ROOT / "roles/monitoring/files/rules.yml").read_text())
NAMES = [one.name for one in dashboards()]
#: Metrics of the distribution's node exporter, and of Prometheus itself.
OTHERS = re.compile(r"node_\w+|up|ALERTS")


def schema(name):
    return json.loads((RECORDED / f"{name}.schema.json").read_text())


def problems(document, schema_, definition=None):
    if definition:
        schema_ = {"$ref": f"#/definitions/{definition}", "definitions": schema_["definitions"]}
    validator = jsonschema.validators.validator_for(schema_)(schema_)
    return [f"{list(one.absolute_path)}: {one.message}" for one in validator.iter_errors(document)]


def grafana_problems(document):
    """Of a whole dashboard: its frame, and the options of each panel by the panel's own schema."""
    found = problems(document, schema("grafana-dashboard"), "Dashboard")
    for panel in document["panels"]:
        if panel["type"] == "row":
            continue
        own = schema(f"grafana-{panel['type']}")
        found += problems(panel["options"], own, "Options")
        if "FieldConfig" in own["definitions"]:
            found += problems(panel["fieldConfig"]["defaults"]["custom"], own, "FieldConfig")
        for target in panel["targets"]:
            found += problems(target, schema("grafana-prometheus"), "Dataquery")
    return found


def of(name):
    return next(one for one in dashboards() if one.name == name)


def panels_of_grafana(document):
    return [one for one in document["panels"] if one["type"] != "row"]


@pytest.mark.parametrize("name", NAMES)
def test_grafana_takes_it(name):
    assert grafana_problems(grafana.dashboard(of(name))) == []


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (lambda board: board["panels"][1].update(gridPos={"x": 0}), "any of"),
        (lambda board: board["panels"][1]["options"].update(graphMode="areas"), "areas"),
        (
            lambda board: board["panels"][-1]["fieldConfig"]["defaults"]["custom"].update(drawStyle="dots"),
            "dots",
        ),
        (lambda board: board["panels"][-1]["targets"][0].pop("expr"), "expr"),
        (lambda board: board["templating"]["list"][1].update(refresh=7), "7"),
    ],
)
def test_grafanas_schemas_see_mistakes(edit, told):
    board = copy.deepcopy(grafana.dashboard(dashboards()[0]))
    edit(board)
    assert told in "\n".join(grafana_problems(board))


@pytest.mark.parametrize("name", NAMES)
def test_perses_takes_it(name):
    document = perses.dashboard(of(name))
    assert problems(document, schema("perses-dashboard")) == []
    shown = [
        item["content"]["$ref"] for grid in document["spec"]["layouts"] for item in grid["spec"]["items"]
    ]
    assert shown == [f"#/spec/panels/{key}" for key in document["spec"]["panels"]]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("panels", "row0-0", "spec", "plugin", "spec", "calculation"), "latest"),
        (("panels", "row1-0", "spec", "plugin", "spec", "yAxis", "format", "unit"), "tokens"),
        (("variables", 0, "spec", "plugin", "spec", "label"), "box"),
        (("layouts", 0, "spec", "items", 0, "width"), 25),
    ],
)
def test_perses_schema_sees_mistakes(path, value):
    document = copy.deepcopy(perses.dashboard(dashboards()[0]))
    inner = document["spec"]
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    assert problems(document, schema("perses-dashboard"))


@pytest.mark.parametrize("name", NAMES)
def test_both_show_the_same(name):
    of_grafana, of_perses = grafana.dashboard(of(name)), perses.dashboard(of(name))
    assert [
        (panel["title"], [(one["expr"], one["legendFormat"]) for one in panel["targets"]])
        for panel in panels_of_grafana(of_grafana)
    ] == [
        (
            panel["spec"]["display"]["name"],
            [
                (one["spec"]["plugin"]["spec"]["query"], one["spec"]["plugin"]["spec"]["seriesNameFormat"])
                for one in panel["spec"]["queries"]
            ],
        )
        for panel in of_perses["spec"]["panels"].values()
    ]


@pytest.mark.parametrize("name", NAMES)
def test_no_panel_covers_another(name):
    taken = set()
    for panel in grafana.dashboard(of(name))["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= COLUMNS
        taken |= cells


def test_a_row_that_is_full_goes_on_in_the_next_line():
    row = of("boxwright-models").rows[1]
    assert [(one.x, one.y) for one in places(row.panels)] == [(0, 0), (12, 0), (0, 8), (12, 8)]
    assert height(row.panels) == 16


@pytest.mark.parametrize("name", NAMES)
def test_every_metric_is_recorded_or_exported(name):
    records = {rule["record"] for group in RULES["groups"] for rule in group["rules"] if "record" in rule}
    script = (ROOT / "roles/monitoring/files/gpu_metrics.py").read_text()
    one = of(name)
    texts = [query.expr for row in one.rows for panel in row.panels for query in panel.queries]
    for text in [*texts, *(variable.of for variable in one.variables)]:
        bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\bby \([^)]*\)", " ", text)
        names = set(re.findall(r"[a-zA-Z_:][\w:]*", bare)) - {"sum", "count", "avg", "rate", "or", "vector"}
        for metric in names:
            exported = metric.removeprefix("boxwright_gpu_")
            assert metric in records or f'"{exported}"' in script or OTHERS.fullmatch(metric), metric


def test_the_units_are_those_of_both_programs():
    assert {unit for one in dashboards() for row in one.rows for unit in {p.unit for p in row.panels}} <= set(
        units()
    )
    assert all(set(names) == {"grafana", "perses"} for names in units().values())
