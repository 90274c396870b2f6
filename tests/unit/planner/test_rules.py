"""Each rule, by its id: told, sourced, and seen both to speak and to keep silent (cases/*.yml)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from boxwright import catalog, planner
from boxwright.planner import rules
from boxwright.spec import inventory
from boxwright.spec.box import box_from_variables

ROOT = Path(__file__).parents[3]
CATALOG = catalog.load()
STORIES = rules.stories()
FILES = [
    yaml.safe_load(file.read_text(encoding="utf-8"))
    for file in sorted((Path(__file__).parent / "cases").glob("*.yml"))
]
#: (bases, case) of every file.
CASES = [(document.get("bases", {}), case) for document in FILES for case in document["cases"]]


def _named(*keys: str) -> set[str]:
    return {identity for _, case in CASES for key in keys for identity in case["expect"].get(key, ())}


@pytest.mark.parametrize("identity", sorted(STORIES))
def test_a_rule_has_a_case_that_fires_and_one_that_does_not(identity):
    kind = "gates" if STORIES[identity].kind == "gate" else "advice"
    assert identity in _named(kind), f"no case expects {identity} among its {kind}"
    assert identity in _named("silent"), f"no case expects {identity} to keep silent"


def test_cases_name_only_rules_that_there_are():
    assert _named("gates", "advice", "silent") <= set(STORIES)


@pytest.mark.parametrize("identity", sorted(STORIES))
def test_a_story_has_a_sentence_and_a_source(identity):
    story = STORIES[identity]
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", identity)
    assert story.text.splitlines()[0].rstrip()
    assert len(story.text) > 40
    assert story.text.rstrip()[-1] in '.".”'
    if not re.fullmatch(r"https://[a-z0-9.-]+/\S*", story.source):
        assert (ROOT / story.source).exists(), story.source


@pytest.fixture(scope="module")
def told(variables, facts_of):
    """The variables and the findings of every case."""
    found = []
    for bases, case in CASES:
        declared = variables(bases, case["spec"])
        box = box_from_variables("box1", declared)
        made = planner.plan(box, facts_of(box, case.get("facts")), CATALOG)
        found.append((declared, [*made.gates, *made.advice]))
    return found


def test_a_finding_says_what_is_wrong_and_the_way_out(told):
    for _, findings in told:
        for found in findings:
            assert found.fix, found
            for text in (found.message, *found.fix):
                assert text.strip() == text
                assert text.isprintable()
                assert not re.search(r"  |\{\}|\[\]|!|\bplease\b|\berror\b", text), text
            assert 20 < len(found.message) < 420, found.message
            assert all(len(way) < 180 for way in found.fix), found.fix


def test_a_finding_has_a_place_in_the_inventory(told, tmp_path):
    (tmp_path / "host_vars").mkdir()
    hosts = {f"box{number}": None for number in range(len(told))}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
    for number, (declared, _) in enumerate(told):
        text = yaml.safe_dump(declared, allow_unicode=True)
        (tmp_path / "host_vars" / f"box{number}.yml").write_text(text, encoding="utf-8")
    loaded = inventory.load([tmp_path])
    for number, (_, findings) in enumerate(told):
        for found in findings:
            place = loaded.location(f"box{number}", found.path) or loaded.place_of(f"box{number}")
            assert place is not None, found
            # What is about a deployment is declared in it; the host's own may be a default.
            if found.deployment is not None:
                assert place.file.name == f"box{number}.yml", found
                assert place.line > 0
