"""The lines of a host's history as runs."""

import json

import pytest

from boxwright.facts.runs import Checkout, past_runs


def begun(run="a", **more):
    return json.dumps({"event": "begun", "run": run, "verb": "provision", "user": "me", "controller": "desk",
                       "process": 7, "at": 100.0, **more})  # fmt: skip


def ended(run="a", **more):
    return json.dumps({"event": "ended", "run": run, "at": 142.5, "outcome": "ok", **more})


def nobody(*_):
    return None


def test_two_lines_are_one_run():
    inventory = [{"name": "local", "commit": "c" * 40, "edited": True}]
    (one,) = past_runs([begun(inventory=inventory), ended(changed={"engine": 2}, failure=None)], nobody)
    assert (one.by, one.verb, one.outcome, one.seconds) == ("me@desk", "provision", "ok", 42.5)
    assert one.inventory == (Checkout("local", "c" * 40, True),)
    assert one.changed == {"engine": 2}


@pytest.mark.parametrize(
    ("alive", "outcomes"),
    [
        (nobody, ["killed", "not ended"]),
        (lambda *_: False, ["killed", "killed"]),
        (lambda *_: True, ["running", "running"]),
    ],
)
def test_a_run_without_an_end(alive, outcomes):
    runs = past_runs([begun("a"), begun("b")], alive)
    assert [one.outcome for one in runs] == outcomes
    assert [one.seconds for one in runs] == [None, None]


def test_two_controllers_at_once_keep_their_ends():
    runs = past_runs([begun("a"), begun("b"), ended("b"), ended("a", outcome="failed")], nobody)
    assert [(one.id, one.outcome) for one in runs] == [("a", "failed"), ("b", "ok")]


@pytest.mark.parametrize(
    "line",
    ["", "torn {", "[1]", "null", '{"event": 3}', '{"event": "begun"}', '{"event": "begun", "run": []}',
     "[" * 100_000, ended("nobody-began-it")],
)  # fmt: skip
def test_what_is_no_run_is_left_out(line):
    assert [one.id for one in past_runs([line, begun("a"), ended("a")], nobody)] == ["a"]


def test_hostile_values_become_plain_ones():
    bad = {"inventory": [3, {"name": 4}], "changed": {"x": "y", "z": True}, "releases": [None, {"after": 2}],
           "did": [1], "failure": {"role": 3, "message": []}, "at": "now", "outcome": "great"}  # fmt: skip
    (one,) = past_runs([begun(options="no", at=None, process="x"), ended(**bad)], nobody)
    assert (one.begun, one.seconds, one.options, one.outcome) == (0.0, 0.0, (), "not ended")
    assert one.to_json()["changed"] == {"x": 0, "z": 0}
