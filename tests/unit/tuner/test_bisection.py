"""Bisecting what two declarations differ in: every kind of cost, on boxes whose speed is known."""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxwright.tuner.bisection import Bisecting

sys.path.insert(0, str(Path(__file__).parent))
from measured_boxes import GOAL, Speedy

NAMES = [f"option{number}" for number in range(8)]


def bisected(speed, names=NAMES, most=100, upon=None, **box):
    """The blame of a bisection, and the box. speed: names of the bad side that are on -> tokens a second."""
    delta = dict.fromkeys(names, ("good", "bad"))
    found = Bisecting(delta, upon or {}, GOAL, most)
    speedy = Speedy(lambda options: speed({n for n, v in options.items() if v == "bad"}), **box)
    speedy.drive(found.candidates())
    return found.blame, speedy


@pytest.mark.parametrize("culprit", NAMES)
def test_one_option_is_named_with_its_cost(culprit):
    blame, box = bisected(lambda bad: 30 if culprit in bad else 100)
    assert [one.options for one in blame.culprits] == [(culprit,)]
    assert blame.culprits[0].cost.change == pytest.approx(-0.7, abs=0.05)
    assert blame.rest.verdict == "noise"
    # Two sides, two of each halving, and the rest.
    assert len([one for one in box.asked if not one.again]) <= 2 + 2 * 3 + 1
    assert not blame.ended


def test_several_options_each_with_its_own_cost():
    costs = {"option1": 0.5, "option6": 0.8}

    def speed(bad):
        found = 100.0
        for name in bad:
            found *= costs.get(name, 1)
        return found

    blame, _ = bisected(speed)
    assert {one.options: round(one.cost.change, 1) for one in blame.culprits} == {
        ("option1",): -0.5,
        ("option6",): -0.2,
    }


@pytest.mark.parametrize("pair", [("option0", "option7"), ("option2", "option3"), ("option1", "option5")])
def test_options_that_cost_only_together_are_named_together(pair):
    blame, _ = bisected(lambda bad: 25 if set(pair) <= bad else 100)
    assert [set(one.options) for one in blame.culprits] == [set(pair)]
    assert blame.rest.verdict == "noise"


def test_no_difference_is_said_after_measuring_again():
    blame, box = bisected(lambda bad: 100, noise=0.05)
    assert not blame.differs
    assert blame.culprits == ()
    assert {one.label for one in box.asked} == {"the good side", "the bad side"}


def test_noise_is_measured_again_until_the_difference_shows():
    blame, box = bisected(lambda bad: 88 if "option4" in bad else 100, noise=0.06)
    assert any(one.again for one in box.asked)
    assert blame.differs
    assert ("option4",) in [one.options for one in blame.culprits]


def test_a_bad_side_that_is_faster_is_no_culprit():
    blame, box = bisected(lambda bad: 150 if bad else 100)
    assert blame.overall.verdict == "better"
    assert (blame.culprits, len(box.asked)) == ((), 2)


def test_what_cannot_be_tried_alone_is_gone_round():
    """option3 starts only beside option2, as a backend that wants its number format does."""

    def speed(bad):
        if "option3" in bad and "option2" not in bad:
            return "refused: option3 needs option2"
        return 20 if "option3" in bad else 100

    blame, _ = bisected(speed)
    assert [set(one.options) for one in blame.culprits] == [{"option2", "option3"}]


def test_a_side_that_does_not_start_ends_it():
    blame, box = bisected(lambda bad: "failed: no room" if len(bad) == len(NAMES) else 100)
    assert blame.bad.why == "failed: no room"
    assert (blame.overall, len(box.asked)) == (None, 2)


def test_the_number_of_candidates_and_the_time_are_bounds():
    blame, box = bisected(lambda bad: 30 if "option5" in bad else 100, most=3)
    assert len([one for one in box.asked if not one.again]) == 4
    assert "--candidates" in blame.ended
    delta = dict.fromkeys(NAMES, ("good", "bad"))
    found = Bisecting(delta, {}, GOAL, 100)
    Speedy(lambda options: 30 if options.get("option5") == "bad" else 100).drive(found.candidates(), most=3)
    assert "--minutes" in found.blame.ended
    assert found.blame.differs


def test_candidates_are_the_good_side_with_options_of_the_bad_one():
    _, box = bisected(lambda bad: 30 if "option0" in bad else 100, names=NAMES[:2], upon={"other": 1})
    assert box.asked[0].options == {"other": 1}
    assert box.asked[1].options == {"other": 1, "option0": "bad", "option1": "bad"}


@given(st.sets(st.sampled_from(NAMES), min_size=1, max_size=3))
def test_whatever_costs_together_is_found_and_nothing_else(culprits):
    blame, _ = bisected(lambda bad: 30 if culprits <= bad else 100, noise=0.002)
    assert [set(one.options) for one in blame.culprits] == [culprits]
