"""A candidate, what came of it when it was tried, and how two of them compare."""

from __future__ import annotations

import math
import statistics
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from boxwright.bench.comparison import Difference, difference
from boxwright.bench.noise import FEWEST, LEAST, LEVEL, Spread, spread
from boxwright.bench.run import Place, Run

#: How often a candidate is measured once more where it may be better, or worse, or only noise.
MOST_AGAIN = 2
#: Looked at so often, a difference must be that much surer than one that is looked at once (Bonferroni).
SURE = LEVEL / (MOST_AGAIN + 1)
#: What came of a candidate: measured; refused by the plan; failed on the box.
MEASURED, REFUSED, FAILED = "measured", "refused", "failed"


@dataclass(frozen=True)
class Candidate:
    """What is to be tried: options against the declaration. again: how often it was measured already."""

    options: Mapping[str, Any]
    label: str
    again: int = 0


@dataclass(frozen=True)
class Trial:
    """What came of a candidate. why: of one that was not measured. seconds: that it took."""

    candidate: Candidate
    status: str
    runs: tuple[Run, ...] = ()
    why: str = ""
    seconds: float = 0.0

    @property
    def measured(self) -> bool:
        """Whether there are figures of it."""
        return self.status == MEASURED and bool(self.runs)


@dataclass(frozen=True)
class Goal:
    """What is to become better: a figure at a place. name: as it was asked for."""

    name: str
    figure: str
    place: Place

    def values(self, trial: Trial) -> list[float]:
        """The figure's repeats."""
        return [
            value
            for run in trial.runs
            if (point := run.at(self.place))
            for value in point.values(self.figure)
        ]

    def spread(self, trial: Trial) -> Spread | None:
        """The figure's median and ends."""
        return spread(self.values(trial))

    def median(self, trial: Trial) -> float | None:
        """The figure."""
        values = self.values(trial)
        return statistics.median(values) if values else None

    def doubt(self, trial: Trial) -> float:
        """How little its mean is known: the variance of that, as a share of the mean squared."""
        values = self.values(trial)
        mean = statistics.fmean(values) if values else 0.0
        if len(values) < FEWEST or not mean:
            return math.inf
        return statistics.variance(values) / len(values) / mean**2

    def difference(self, first: Trial, second: Trial) -> Difference | None:
        """How the second stands to the first; None where one of them has no such figure."""
        found = difference(first.runs, second.runs, self.place, self.figure)
        if found and found.verdict in ("better", "worse") and (found.p is None or found.p >= SURE):
            return replace(found, verdict="noise")
        return found


#: A search asks for candidates and is sent what came of them; None ends it for want of time.
Asking = Generator[Candidate, "Trial | None", Any]


class OutOfTime(Exception):
    """No further candidate can be tried."""


def tried(candidate: Candidate) -> Generator[Candidate, Trial | None, Trial]:
    """Have a candidate tried. Raises OutOfTime."""
    found = yield candidate
    if found is None:
        raise OutOfTime
    return found


def settled(
    goal: Goal, first: Trial, second: Trial
) -> Generator[Candidate, Trial | None, tuple[Trial, Trial, Difference | None]]:
    """How the second stands to the first. While that may be noise, and may not, one is measured again.

    Which one: that of whose mean less is known. A busy moment falls on either, and measuring the other more
    often does not tell it from a difference. Gives both with all of their runs. Raises OutOfTime.
    """
    found = goal.difference(first, second)
    for _ in range(MOST_AGAIN):
        if found is None or found.verdict in ("better", "worse") or abs(found.change) < LEAST:
            break
        doubted = first if goal.doubt(first) > goal.doubt(second) else second
        more = yield from tried(replace(doubted.candidate, again=len(doubted.runs)))
        if not more.measured:
            break
        runs, seconds = (*doubted.runs, *more.runs), doubted.seconds + more.seconds
        surer = replace(doubted, runs=runs, seconds=seconds)
        first, second = (surer, second) if doubted is first else (first, surer)
        found = goal.difference(first, second)
    return first, second, found
