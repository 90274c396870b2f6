"""The search for a better setting, on boxes whose speed is known."""

import sys
from pathlib import Path

from boxwright.tuner.proposals import Sweep, Value, label
from boxwright.tuner.search import Searching

sys.path.insert(0, str(Path(__file__).parent))
from measured_boxes import GOAL, Speedy


def sweep(kind, option, *values, refused=()):
    found = tuple(
        Value({option: one}, label(option, one), "refused: too large" if one in refused else "")
        for one in values
    )
    return Sweep(kind, option, "as declared", found)


SWEEPS = (sweep("sequences", "concurrency", 8, 16, refused=(16,)), sweep("kv", "kv_cache", "fp8"))


def searched(speed, sweeps=SWEEPS, most=20, time=1000, **box):
    search = Searching(sweeps, GOAL, most)
    speedy = Speedy(speed, **box)
    speedy.drive(search.candidates(), most=time)
    return search.found, speedy


def test_the_better_value_of_each_kind_is_kept_and_the_gain_is_told():
    speeds = {None: 1.0, 8: 2.0, "fp8": 1.5}
    found, box = searched(
        lambda options: 50 * speeds[options.get("concurrency")] * speeds[options.get("kv_cache")]
    )
    assert found.best.candidate.options == {"concurrency": 8, "kv_cache": "fp8"}
    assert found.better
    assert 1.8 < found.overall.change < 2.2
    assert [step.taken for step in found.steps] == [True, True]
    # What the plan refuses is never tried.
    assert all(one.options.get("concurrency") != 16 for one in box.asked)


def test_worse_and_failed_ones_are_told_and_left():
    found, _ = searched(
        lambda options: "failed: crashed" if options.get("kv_cache") else 20 if options else 50
    )
    assert not found.better
    assert [(step.trial.status, step.taken) for step in found.steps] == [
        ("measured", False),
        ("failed", False),
    ]
    assert found.steps[0].difference.verdict == "worse"
    assert found.overall is None


def test_noise_is_no_gain():
    found, box = searched(lambda options: 50.5 if options else 50, noise=0.04)
    assert not found.better
    assert {step.difference.verdict for step in found.steps} == {"noise"}
    assert len(box.asked) >= 3


def test_a_second_round_sees_what_another_kind_made_possible():
    def speed(options):
        fp8, many = options.get("kv_cache") == "fp8", options.get("concurrency") == 8
        return 90 if fp8 and many else 70 if fp8 else 30 if many else 50

    found, box = searched(speed)
    assert found.best.candidate.options == {"concurrency": 8, "kv_cache": "fp8"}
    assert len([one for one in box.asked if not one.again]) == len({str(one.options) for one in box.asked})


def test_number_and_time_are_bounds():
    found, box = searched(lambda options: 50, most=1)
    assert "--candidates" in found.ended
    assert len({str(one.options) for one in box.asked}) == 2
    found, _ = searched(lambda options: 50, time=1)
    assert "--minutes" in found.ended
    assert found.base.measured


def test_a_declaration_that_cannot_be_measured_ends_it():
    found, box = searched(lambda options: "failed: no card")
    assert not found.base.measured
    assert len(box.asked) == 1
