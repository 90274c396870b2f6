"""A candidate, what came of it when it was tried, and how two of them compare."""

from __future__ import annotations

import statistics
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from boxwright.bench.comparison import Difference, compare
from boxwright.bench.noise import LEAST, LEVEL, Spread, spread
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

    def difference(self, first: Trial, second: Trial) -> Difference | None:
        """How the second stands to the first; None where one of them has no such figure."""
        known = compare(first.runs, second.runs)
        found = next((one for one in known if (one.place, one.figure) == (self.place, self.figure)), None)
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
) -> Generator[Candidate, Trial | None, tuple[Trial, Difference | None]]:
    """How the second stands to the first; it is measured again while that may be noise, and may not.

    Gives the second with all of its runs. Raises OutOfTime.
    """
    found = goal.difference(first, second)
    for again in range(1, MOST_AGAIN + 1):
        if found is None or found.verdict in ("better", "worse") or abs(found.change) < LEAST:
            break
        more = yield from tried(replace(second.candidate, again=again))
        if not more.measured:
            break
        second = replace(second, runs=(*second.runs, *more.runs), seconds=second.seconds + more.seconds)
        found = goal.difference(first, second)
    return second, found
