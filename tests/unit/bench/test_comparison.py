"""Planted differences are found, noise is called so, and too few repeats are not judged."""

import random

import pytest

from boxwright.bench.comparison import compare
from boxwright.bench.run import read


def run(rates, context=None, name="a"):
    """A run of one place whose repeats decode at these rates, one sequence at a time."""
    return read(
        {
            "id": f"20261130T070000Z-{name}",
            "points": [
                {
                    "kind": "context" if context else "prompts",
                    "concurrency": 1,
                    "context": context,
                    "repeats": [{"engine": {"median_tpot_ms": 1000 / rate}} for rate in rates],
                }
            ],
        }
    )


def noisy(middle, share, count, seed):
    draw = random.Random(seed)
    return [middle * (1 + draw.gauss(0, share)) for _ in range(count)]


def only(differences):
    [one] = differences
    assert one.figure == "decode"
    return one


@pytest.mark.parametrize("seed", range(20))
def test_a_planted_difference_is_found(seed):
    found = only(compare([run(noisy(60, 0.01, 5, seed))], [run(noisy(54, 0.01, 5, seed + 100))]))
    assert found.verdict == "worse"
    assert found.change == pytest.approx(-0.1, abs=0.03)
    back = only(compare([run(noisy(54, 0.01, 5, seed))], [run(noisy(60, 0.01, 5, seed + 100))]))
    assert back.verdict == "better"


def test_the_same_speed_is_noise_as_often_as_promised():
    """At 5 %, of 400 pairs that differ by nothing but noise about 20 are expected beyond it, hardly 40."""
    pairs = [(noisy(60, 0.05, 4, seed), noisy(60, 0.05, 4, 10_000 + seed)) for seed in range(400)]
    wrong = [pair for pair in pairs if only(compare([run(pair[0])], [run(pair[1])])).verdict != "noise"]
    assert len(wrong) <= 40


def test_a_difference_smaller_than_what_changes_between_runs_is_noise_however_steady_the_repeats():
    found = only(compare([run([60.0, 60.01, 60.02])], [run([60.6, 60.61, 60.62])]))
    assert found.p < 0.001
    assert found.verdict == "noise"


def test_two_repeats_are_not_judged():
    found = only(compare([run([60, 61])], [run([30, 31, 32])]))
    assert (found.verdict, found.p, found.repeats) == ("unknown", None, (2, 3))


def test_runs_of_a_release_are_taken_together():
    found = only(compare([run([60, 61]), run([62, 63], name="b")], [run([50, 51, 52])]))
    assert found.repeats == (4, 3)
    assert found.verdict == "worse"


def test_more_of_a_time_is_worse():
    sides = [
        [
            read(
                {
                    "points": [
                        {"concurrency": 2, "repeats": [{"engine": {"median_ttft_ms": ms}} for ms in times]}
                    ]
                }
            )
        ]
        for times in ((100, 101, 102), (150, 151, 152))
    ]
    [found] = compare(*sides)
    assert (found.figure, found.verdict) == ("ttft", "worse")


def test_only_the_same_place_is_compared():
    assert compare([run([60, 61, 62], context=1024)], [run([60, 61, 62], context=8192)]) == []


def test_many_figures_at_once_make_each_of_them_harder_to_call_a_difference():
    """p = 0.0213 alone (see test_noise) is a difference; as one of five it is not."""
    one, other = run([1, 2, 3]), run([4, 5, 6])
    assert only(compare([one], [other])).verdict == "better"
    places = [
        {"concurrency": 1, "repeats": [{"engine": {"median_tpot_ms": 1000 / rate}} for rate in (1, 2, 3)]}
    ]
    places += [
        {"concurrency": at, "repeats": [{"engine": {"median_tpot_ms": 1000 / rate}} for rate in (1, 2, 3)]}
        for at in (2, 4, 8, 16)
    ]
    many = {"points": places}
    changed = {
        "points": [
            dict(places[0], repeats=[{"engine": {"median_tpot_ms": 1000 / r}} for r in (4, 5, 6)]),
            *places[1:],
        ]
    }
    found = compare([read(many)], [read(changed)])
    assert {one.verdict for one in found} == {"noise"}
