"""The verb explain: ids of the plan, ids of the doctor, and those that are both."""

import json

import pytest

from boxwright.cli import explaining
from boxwright.doctor import signatures
from boxwright.errors import EXIT_BAD_INPUT, UserError
from boxwright.planner import rules

FAULTS = {one.id: one for one in signatures()}
BOTH = sorted(set(FAULTS) & set(rules.stories()))


def test_a_fault_is_told_with_cause_fix_and_source(capsys):
    explaining.explain("xid-79")
    out = capsys.readouterr().out
    words = " ".join(out.split())
    assert out.startswith("xid-79 (the doctor: fatal)\n")
    assert "The card CARD has fallen off the bus" in words
    assert "do switch the box off and on" in words
    assert "seen NVRM: Xid (PCI:0000:01:00): 79," in words
    assert f"source: {FAULTS['xid-79'].source}" in words
    assert max(map(len, out.splitlines())) <= 110


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_can_be_told(capsys, name):
    explaining.explain(name)
    out = capsys.readouterr().out
    assert f"{name} (the doctor: {FAULTS[name].severity})" in out
    assert "{" not in " ".join(FAULTS[name].explained()[0].replace("{repo, revision}", "").split())
    assert "?" not in FAULTS[name].explained()[0]


@pytest.mark.parametrize("name", FAULTS)
def test_and_to_programs(capsys, name):
    explaining.explain(name, as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["id"] == name
    assert set(found["doctor"]) == {"severity", "cause", "fix", "example", "source"}
    assert found["doctor"]["source"] == FAULTS[name].source


def test_an_id_of_both_tells_both(capsys):
    assert BOTH
    explaining.explain(BOTH[0])
    out = capsys.readouterr().out
    assert f"{BOTH[0]} ({rules.stories()[BOTH[0]].kind})" in out
    assert f"{BOTH[0]} (the doctor: " in out
    explaining.explain(BOTH[0], as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["kind"] == rules.stories()[BOTH[0]].kind
    assert found["doctor"]["cause"] == FAULTS[BOTH[0]].explained()[0]


def test_all_are_listed(capsys):
    explaining.explain("")
    first = {line.split()[0] for line in capsys.readouterr().out.splitlines()[1:] if line and line[0] != " "}
    assert set(FAULTS) | set(rules.stories()) <= first
    explaining.explain("", as_json=True)
    assert set(json.loads(capsys.readouterr().out)) == set(FAULTS) | set(rules.stories())


@pytest.mark.parametrize(
    ("word", "guess"),
    [("xid_79", "xid-79"), ("cuda-out-of-memry", "cuda-out-of-memory"), ("Hub_Gated", "hub-gated")],
)
def test_a_near_miss_names_the_nearest(word, guess):
    with pytest.raises(UserError) as error:
        explaining.explain(word)
    assert error.value.status == EXIT_BAD_INPUT
    assert error.value.ways_out[0] == f"./invoke explain {guess}"
