"""Each contradicted claim of the field reports (seeds.yml) is answered: by a rule, a mistake, or numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from boxwright import catalog, planner
from boxwright.planner import rules
from boxwright.spec.box import box_from_variables
from boxwright.spec.problem import SpecErrors
from boxwright.spec.validate import judged_box

CATALOG = catalog.load()
DOCUMENT = yaml.safe_load(Path(__file__).with_name("seeds.yml").read_text(encoding="utf-8"))
ROWS = DOCUMENT["rows"]
#: Rows of the reports by mark: 215 claims, 47 contradicted, 32 partly wrong.
CONTRADICTED, PARTLY_WRONG = 47, 32
#: What a row may say to be answered.
ANSWERS = {"answers", "mistake", "works", "values", "card", "silent"}


def test_every_contradicted_row_is_here():
    marks = [row["mark"] for row in ROWS]
    assert len({row["id"] for row in ROWS}) == len(ROWS)
    assert (marks.count("C"), marks.count("C/P")) == (CONTRADICTED, PARTLY_WRONG)


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_a_row_about_a_setting_is_answered(row):
    assert ("setting" in row) != ("no_setting" in row)
    assert "setting" not in row or ANSWERS & set(row)
    assert row.get("card") or row.get("spec") or "no_setting" in row


@pytest.mark.parametrize("row", [row for row in ROWS if "spec" in row], ids=lambda row: row["id"])
def test_the_answer(row, variables, facts_of):
    declared = variables(DOCUMENT["bases"], row["spec"])
    if "mistake" in row:
        with pytest.raises(SpecErrors) as refused:
            judged_box("box1", declared)
        for word in row["mistake"]:
            assert word in str(refused.value)
        return
    box = judged_box("box1", declared)
    assert box == box_from_variables("box1", declared)
    made = planner.plan(box, facts_of(box, row.get("facts")), CATALOG)
    told = [*made.gates, *made.advice]
    for answer in row.get("answers", ()):
        texts = [_text(found) for found in told if found.id == answer["id"]]
        assert any(all(word in text for word in answer["words"]) for text in texts), (answer, told)
    if row.get("works"):
        assert not made.gates
    assert not set(row.get("silent", ())) & {found.id for found in told}
    plain = made.to_json()
    deployment = plain["deployments"][0]
    line = "\0".join(deployment["command"])
    assert "\0".join(row.get("command", ())) in line
    for change in row.get("changes", ()):
        assert change in [made["text"] for made in plain["changes"]]
    for path, wanted in row.get("values", {}).items():
        found = _value(deployment, path)
        if isinstance(wanted, dict):
            assert wanted.get("at_least", found) <= found <= wanted.get("at_most", found), (path, found)
        else:
            assert found == wanted, path


@pytest.mark.parametrize("row", [row for row in ROWS if "card" in row], ids=lambda row: row["id"])
def test_what_the_catalog_says_of_a_card(row):
    kind = CATALOG.card(row["card"]["id"])
    for name, wanted in row["card"].items():
        assert getattr(kind, name) == wanted


def _text(found: Any) -> str:
    story = " ".join(rules.stories()[found.id].text.split())
    return "\n".join((found.message, *found.fix, story))


def _value(deployment: dict[str, Any], path: str) -> Any:
    """A value of a deployment's plan, or one that follows from it."""
    memory = deployment["memory"]
    a_token = memory["kv_block_bytes"] / memory["kv_block_tokens"] * deployment["tensor_parallel"]
    if path == "kv_bytes_per_token":
        return a_token
    if path == "kv_bytes":
        return a_token * deployment["context"]
    if path.startswith("line."):
        return next(line["bytes"] for line in memory["lines"] if line["name"] == path.removeprefix("line."))
    found: Any = deployment
    for step in path.split("."):
        found = found[step]
    return found
