"""Planner cases as tables: declaration, facts, expectation (cases/*.yml).

spec: the variables of a box; `base: NAME` under spec takes those of the file's `bases`. facts: changes to the
facts of the declared cards, as `to_json` has them; with any of them the host counts as asked. expect: gates
(all ids), advice (ids that must be among it), silent (ids that must be in neither), fix (text in some way
out), ways (how many ways out the one gate has), message, command (words in a row), without (words), env,
changes (change, no_change: some of them), and values of the deployment by path, each a value or {at_least,
at_most}.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from boxwright import catalog, planner
from boxwright.spec.box import box_from_variables

CATALOG = catalog.load()


def load() -> list[Any]:
    """Every case of every file, with the file's bases."""
    found = []
    for file in sorted((Path(__file__).parent / "cases").glob("*.yml")):
        document = yaml.safe_load(file.read_text())
        for case in document["cases"]:
            found.append(
                pytest.param(dict(case, bases=document.get("bases", {})), id=f"{file.stem}: {case['name']}")
            )
    return found


def _at(plain: Any, path: str) -> Any:
    for step in path.split("."):
        plain = plain[int(step)] if isinstance(plain, list) else plain[step]
    return plain


@pytest.mark.parametrize("case", load())
def test_case(case, variables, facts_of):
    box = box_from_variables("box1", variables(case["bases"], case["spec"]))
    made = planner.plan(box, facts_of(box, case.get("facts")), CATALOG)
    plain, expect = made.to_json(), case["expect"]
    gates = [found.id for found in made.gates]
    assert sorted(gates) == sorted(expect.get("gates", [])), "\n".join(found.message for found in made.gates)
    advice = {found.id: found for found in made.advice}
    assert set(expect.get("advice", ())) <= set(advice)
    assert not set(expect.get("silent", ())) & {*gates, *advice}
    told = [*made.gates, *made.advice]
    for text in _list(expect.get("message")):
        assert any(text in found.message for found in told), [found.message for found in told]
    for text in _list(expect.get("fix")):
        assert any(text in way for found in told for way in found.fix), [found.fix for found in told]
    if "ways" in expect:
        assert [len(found.fix) for found in made.gates] == [expect["ways"]], made.gates[0].fix
    for path in _list(expect.get("path")):
        assert any(found.path == path for found in told), [found.path for found in told]
    changes = [change["text"] for change in plain["changes"] or ()]
    for text in expect.get("change", ()):
        assert text in changes
    for text in expect.get("no_change", ()):
        assert not any(text in change for change in changes), changes
    if plain["deployments"]:
        deployment = plain["deployments"][0]
        line = "\0".join(deployment["command"]) + "\0"
        for words in expect.get("command", ()):
            assert "\0".join(map(str, words)) + "\0" in line, deployment["command"]
        for word in expect.get("without", ()):
            assert word not in deployment["command"]
        for name, value in expect.get("env", {}).items():
            assert deployment["env"].get(name) == value
        for path, value in expect.get("values", {}).items():
            found = _at(deployment, path)
            if isinstance(value, dict) and {"at_least", "at_most"} & set(value):
                low = found["low"] if isinstance(found, dict) else found
                high = found["high"] if isinstance(found, dict) else found
                assert low >= value.get("at_least", low), (path, found)
                assert high <= value.get("at_most", high), (path, found)
            else:
                assert found == value, path


def _list(value: Any) -> list[str]:
    return [] if value is None else value if isinstance(value, list) else [value]
