"""Spread, Welch's test against known values, Holm's correction."""

import math

import pytest

from boxwright.bench.noise import holm, incomplete_beta, spread, welch


def test_spread_is_the_median_with_its_ends():
    found = spread([3.0, 1.0, 2.0, 10.0])
    assert (found.median, found.low, found.high, found.repeats) == (2.5, 1.0, 10.0, 4)
    assert spread([]) is None


#: Values of the regularized incomplete beta function that have a closed form.
@pytest.mark.parametrize(
    ("a", "b", "x", "known"),
    [
        (1, 1, 0.3, 0.3),
        (2, 1, 0.5, 0.25),
        (1, 3, 0.2, 1 - 0.8**3),
        (0.5, 0.5, 0.25, 2 / math.pi * math.asin(0.5)),
        (0.5, 0.5, 0.99, 2 / math.pi * math.asin(math.sqrt(0.99))),
        (5, 5, 0.5, 0.5),
        (3, 2, 0.0, 0.0),
        (3, 2, 1.0, 1.0),
    ],
)
def test_incomplete_beta_where_it_has_a_closed_form(a, b, x, known):
    assert incomplete_beta(a, b, x) == pytest.approx(known, abs=1e-12)


def test_two_tails_of_students_t_in_the_tables():
    """t = 2.776 with 4 degrees of freedom is the 5 % of every table, t = 4.604 the 1 %."""
    for t, chance in ((2.7764451, 0.05), (4.6040949, 0.01), (0.0, 1.0)):
        assert incomplete_beta(2, 0.5, 4 / (4 + t * t)) == pytest.approx(chance, abs=1e-6)


def test_welch_of_equal_variances_is_students_t():
    """Means 2 and 5, variances 1, three each: t = 3 / sqrt(2/3), 4 degrees of freedom."""
    t = 3 / math.sqrt(2 / 3)
    expected = incomplete_beta(2, 0.5, 4 / (4 + t * t))
    assert welch([1, 2, 3], [4, 5, 6]) == pytest.approx(expected)
    assert expected == pytest.approx(0.0213, abs=1e-4)


def test_welch_is_told_only_of_three_and_more():
    assert welch([1, 2], [4, 5, 6]) is None
    assert welch([1, 1, 1], [1, 1, 1]) == 1.0
    assert welch([1, 1, 1], [2, 2, 2]) == 0.0


def test_holm_multiplies_the_smallest_most_and_never_turns_the_order():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []
