"""Median and spread of repeats, and whether two sets of them differ by more than noise.

The statistic is Welch's t-test on the repeats, two-sided, corrected for the number of figures that are
compared at once by Holm's method; p below 0.05 after that, and medians at least 2 % apart, is a difference.
The second condition is there because repeats of one run know nothing of what changes between runs (heat,
clocks, the order of requests): such drift is small, and repeats are often closer together than it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

LEVEL = 0.05
#: Of the first median: smaller differences are noise whatever the repeats say.
LEAST = 0.02
FEWEST = 3


@dataclass(frozen=True)
class Spread:
    """Repeats of one figure. low, high: the least and the most of them."""

    median: float
    low: float
    high: float
    repeats: int


def spread(values: Sequence[float]) -> Spread | None:
    """Median and ends; None of nothing."""
    return Spread(statistics.median(values), min(values), max(values), len(values)) if values else None


def welch(first: Sequence[float], second: Sequence[float]) -> float | None:
    """The chance of such a difference of means, or a larger one, where there is none (p).

    None where either side has fewer than three repeats.
    """
    if min(len(first), len(second)) < FEWEST:
        return None
    distance = statistics.fmean(second) - statistics.fmean(first)
    parts = [statistics.variance(one) / len(one) for one in (first, second)]
    error = sum(parts)
    if error == 0:
        return 1.0 if distance == 0 else 0.0
    degrees = error**2 / sum(
        part**2 / (len(one) - 1) for part, one in zip(parts, (first, second), strict=True)
    )
    t = distance / math.sqrt(error)
    return incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t))


def holm(chances: Sequence[float]) -> list[float]:
    """Chances corrected for being many: the smallest times their number, the next times one less, and on."""
    order = sorted(range(len(chances)), key=lambda at: chances[at])
    found, most = [0.0] * len(chances), 0.0
    for rank, at in enumerate(order):
        most = max(most, min(1.0, chances[at] * (len(chances) - rank)))
        found[at] = most
    return found


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function, by its continued fraction (DLMF 8.17.22)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    tiny = 1e-300
    c, d = 1.0, 1 / ((1 - (a + b) * x / (a + 1)) or tiny)
    fraction = d
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / ((1 + term * d) or tiny)
            c = (1 + term / c) or tiny
            fraction *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return front * fraction / a
