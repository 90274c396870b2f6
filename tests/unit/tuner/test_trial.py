"""How two settings compare where one of them was measured in a busy moment."""

import sys
from pathlib import Path

import pytest

from boxwright.tuner.bisection import Bisecting
from boxwright.tuner.proposals import Sweep, Value
from boxwright.tuner.search import Searching
from boxwright.tuner.trial import Candidate, settled

sys.path.insert(0, str(Path(__file__).parent))
from measured_boxes import GOAL, Speedy

#: What was seen of two sides on a busy machine: one of the first three repeats fell into a busy moment.
BUSY_ONCE, SLOW = (22.4, 22.8, 15.6), (2.65, 3.66, 3.55)


class Box(Speedy):
    """One whose first measurement of some options is what was seen."""

    def __init__(self, seen, speed, **more):
        super().__init__(speed, **more)
        self.seen = seen

    def try_out(self, candidate):
        trial = super().try_out(candidate)
        first = self.seen.get(frozenset(candidate.options.values()))
        if candidate.again or first is None:
            return trial
        point = trial.runs[0].points[0]
        for repeat, value in zip(point.repeats, first, strict=True):
            object.__setattr__(repeat, "decode", value)
        return trial


def test_the_side_that_was_measured_in_a_busy_moment_is_measured_again():
    box = Box({frozenset(): BUSY_ONCE, frozenset({"bad"}): SLOW}, lambda options: 3.5 if options else 22.5)
    first, second = box.try_out(Candidate({}, "good")), box.try_out(Candidate({"x": "bad"}, "bad"))
    assert GOAL.doubt(first) > GOAL.doubt(second)
    asking = settled(GOAL, first, second)
    again = []
    try:
        candidate = next(asking)
        while True:
            again.append((candidate.label, candidate.again))
            candidate = asking.send(box.try_out(candidate))
    except StopIteration as end:
        first, second, found = end.value
    assert again == [("good", 1)]
    assert (len(first.runs), len(second.runs), found.verdict) == (2, 1, "worse")


@pytest.mark.parametrize("culprit", ["a", "b", "c"])
def test_a_bisection_whose_good_side_met_a_busy_moment_names_the_option(culprit):
    box = Box({frozenset(): BUSY_ONCE}, lambda options: 3.5 if options.get(culprit) == "bad" else 22.5)
    found = Bisecting(dict.fromkeys("abc", (None, "bad")), {}, GOAL, 24)
    box.drive(found.candidates())
    assert [one.options for one in found.blame.culprits] == [(culprit,)]
    assert len(found.blame.good.runs) > 1


def test_a_search_keeps_what_more_was_measured_of_the_best():
    sweep = Sweep("kv", "kv_cache", "as declared", (Value({"kv_cache": "fp8"}, "kv_cache: fp8", ""),))
    box = Box({frozenset(): BUSY_ONCE}, lambda options: 34 if options else 22.5)
    search = Searching([sweep], GOAL, 8)
    box.drive(search.candidates())
    assert search.found.better
    assert (len(search.found.base.runs), len(search.found.best.runs)) == (2, 1)


def test_two_that_are_alike_are_seldom_told_apart_on_a_noisy_box():
    """Looked at up to three times, the doubted side measured again each time: still one in twenty at most."""
    wrong = 0
    for seed in range(300):
        box = Speedy(lambda _: 20.0, noise=0.2)
        box._random.seed(seed)
        asking = settled(GOAL, box.try_out(Candidate({}, "a")), box.try_out(Candidate({"x": 1}, "b")))
        try:
            candidate = next(asking)
            while True:
                candidate = asking.send(box.try_out(candidate))
        except StopIteration as end:
            wrong += end.value[2].verdict != "noise"
    assert wrong <= 300 * 0.05
