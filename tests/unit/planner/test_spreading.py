"""Which box gets a revision from which."""

import pytest

from boxwright.planner.spreading import givers, lacking, places

A, B = "org--a/" + "1" * 40, "org--b/" + "2" * 40
ALL = {name: ["box1", "box2", "box3", "box4"] for name in ("box1", "box2", "box3")}


@pytest.mark.parametrize(
    ("wanting", "holding", "partners", "expected"),
    [
        # Nobody has it: the first fetches it, the others take it from each other.
        (
            {"box1": [A], "box2": [A], "box3": [A]},
            {},
            ALL,
            {"box1": {}, "box2": {A: ["box1", "box3"]}, "box3": {A: ["box1", "box2"]}},
        ),
        # One outside of the run has it: nobody asks the hub.
        (
            {"box1": [A], "box2": [A]},
            {"box4": [A]},
            ALL,
            {"box1": {A: ["box4", "box2"]}, "box2": {A: ["box4", "box1"]}},
        ),
        # Two models: each has a first box of its own.
        (
            {"box1": [A], "box2": [B, A], "box3": [B]},
            {},
            ALL,
            {"box1": {}, "box2": {A: ["box1"]}, "box3": {B: ["box2"]}},
        ),
        # A box takes only from those that it names; the first one must be among them.
        (
            {"box1": [A], "box2": [A], "box3": [A]},
            {},
            {"box2": ["box3"], "box3": ["box1"]},
            {"box1": {}, "box2": {}, "box3": {A: ["box1"]}},
        ),
        # Only boxes that lack something want anything.
        ({"box1": [], "box2": [A]}, {"box1": [A]}, ALL, {"box1": {}, "box2": {A: ["box1"]}}),
        ({"box1": [A]}, {"box2": [B]}, ALL, {"box1": {}}),
    ],
)
def test_givers(wanting, holding, partners, expected):
    assert {me: givers(me, wanting, holding, partners) for me in wanting} == expected


def test_every_kind_of_weights_is_wanted():
    def hub(repo, digit):
        return {"kind": "hub", "repo": repo, "revision": digit * 40}

    plan = {
        "deployments": [
            {"weights": hub("org/a", "1"), "quantize": None, "drafter": hub("org/b", "2")},
            {"weights": {"kind": "made"}, "quantize": {"source": hub("org/c", "3")}, "drafter": None},
            {"weights": {"kind": "path", "path": "/x"}},
            {"weights": hub("org/a", "1")},
        ]
    }
    assert places(plan) == [A, B, "org--c/" + "3" * 40]


@pytest.mark.parametrize(
    ("changes", "lacks"),
    [(None, True), ([], False), ([{"role": "engine"}], False), ([{"role": "model_weights"}], True)],
)
def test_lacking(changes, lacks):
    assert lacking({"changes": changes}) is lacks
