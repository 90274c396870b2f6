"""Which options of two declarations cost the speed: halving what they differ in, by measurements.

Delta debugging (Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", 2002): a set of
the bad side's options is put upon the good side and measured; the half that costs more is halved again. Where
no half costs anything alone, options cost together, and smaller parts are measured, and what is left without
them. After one culprit was found, what the rest still costs is measured, until that is only noise.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from boxwright.bench.comparison import Difference
from boxwright.tuner.proposals import label
from boxwright.tuner.trial import Candidate, Goal, OutOfTime, Trial, settled, tried

#: Of the whole cost: a set that costs at least so much is looked into without measuring the other half.
MOST_OF_IT = 0.7
GOOD, BAD = "the good side", "the bad side"


@dataclass(frozen=True)
class Culprit:
    """Options that cost speed, by themselves if it is one, or only together. cost: against the good side."""

    options: tuple[str, ...]
    cost: Difference


@dataclass(frozen=True)
class Blame:
    """What a bisection came to.

    overall: bad against good. rest: what the options that are not blamed still cost, None where that was not
    measured. unresolved: sets that could not be tried. ended: why it stopped early; empty where it did not.
    """

    good: Trial | None
    bad: Trial | None
    overall: Difference | None
    culprits: tuple[Culprit, ...]
    rest: Difference | None
    trials: tuple[Trial, ...]
    ended: str

    @property
    def differs(self) -> bool:
        """Whether the bad side is slower by more than noise."""
        return self.overall is not None and self.overall.verdict == "worse"


class Bisecting:
    """A bisection under way. delta: option -> its values on the good and on the bad side."""

    def __init__(
        self,
        delta: Mapping[str, tuple[Any, Any]],
        good: Mapping[str, Any],
        goal: Goal,
        most: int,
    ) -> None:
        """good: options of the good side against the declaration that candidates are made from."""
        self._delta, self._from, self._goal, self._most = delta, good, goal, most
        self._seen: dict[frozenset[str], tuple[Trial, Difference | None]] = {}
        self._good: Trial | None = None
        self._bad: Trial | None = None
        self._overall: Difference | None = None
        self._rest: Difference | None = None
        self._culprits: list[Culprit] = []
        self._ended = ""

    @property
    def blame(self) -> Blame:
        """What is known so far."""
        sides = [one for one in (self._good, self._bad) if one is not None]
        others = [trial for names, (trial, _) in self._seen.items() if names != frozenset(self._delta)]
        return Blame(
            self._good,
            self._bad,
            self._overall,
            tuple(self._culprits),
            self._rest,
            (*sides, *others),
            self._ended,
        )

    def candidates(self) -> Generator[Candidate, Trial | None, None]:
        """Ask for one candidate after the other: the good side, the bad side, then what lies between."""
        try:
            self._good = yield from tried(Candidate(self._options(()), GOOD))
            if not self._good.measured:
                return
            everything = tuple(self._delta)
            whole = yield from self._cost(everything)
            self._bad, self._overall = self._seen[frozenset(everything)]
            if whole is None or whole.verdict != "worse":
                return
            yield from self._blame(everything)
        except OutOfTime:
            self._ended = self._ended or "the time was over (--minutes)"

    def _blame(self, everything: tuple[str, ...]) -> Generator[Candidate, Trial | None, None]:
        left = everything
        while left:
            smallest = yield from self._smallest(left)
            cost = self._seen[frozenset(smallest)][1]
            assert cost is not None
            self._culprits.append(Culprit(smallest, cost))
            left = tuple(name for name in left if name not in smallest)
            if not left:
                return
            self._rest = yield from self._cost(left)
            if self._rest is None or self._rest.verdict != "worse":
                return

    def _smallest(self, options: tuple[str, ...]) -> Generator[Candidate, Trial | None, tuple[str, ...]]:
        """Of options that cost something together, the fewest that do."""
        parts = 2
        while len(options) > 1:
            chosen = yield from self._costliest(_split(options, parts))
            if chosen is None and parts > 2:
                without = [
                    tuple(one for one in options if one not in part) for part in _split(options, parts)
                ]
                chosen = yield from self._costliest(without)
                if chosen is not None:
                    options, parts = chosen, max(parts - 1, 2)
                    continue
            if chosen is not None:
                options, parts = chosen, 2
            elif parts >= len(options):
                break
            else:
                parts = min(len(options), 2 * parts)
        return options

    def _costliest(
        self, sets: Sequence[tuple[str, ...]]
    ) -> Generator[Candidate, Trial | None, tuple[str, ...] | None]:
        """The set that costs most; the first that has most of the whole cost; None where none costs."""
        found: list[tuple[float, tuple[str, ...]]] = []
        assert self._overall is not None
        for one in sets:
            cost = yield from self._cost(one)
            if cost is None or cost.verdict != "worse":
                continue
            if abs(cost.change) >= MOST_OF_IT * abs(self._overall.change):
                return one
            found.append((abs(cost.change), one))
        return max(found, default=(0.0, None))[1]

    def _cost(self, options: tuple[str, ...]) -> Generator[Candidate, Trial | None, Difference | None]:
        """What a set of the bad side's options costs upon the good side; None where it cannot be tried."""
        names = frozenset(options)
        if names in self._seen:
            return self._seen[names][1]
        if len(self._seen) >= self._most:
            self._ended = f"{self._most} candidates were tried (--candidates)"
            raise OutOfTime
        whole = len(names) == len(self._delta)
        told = BAD if whole else "with " + ", ".join(label(one, self._delta[one][1]) for one in options)
        trial = yield from tried(Candidate(self._options(options), told))
        difference = None
        assert self._good is not None
        if trial.measured:
            self._good, trial, difference = yield from settled(self._goal, self._good, trial)
        self._seen[names] = (trial, difference)
        return difference

    def _options(self, bad: Sequence[str]) -> dict[str, Any]:
        """Options of a candidate against the declaration that it is made from."""
        return {**self._from, **{name: self._delta[name][1] for name in bad}}


def _split(options: tuple[str, ...], parts: int) -> list[tuple[str, ...]]:
    """So many parts of about one size, in order, none empty."""
    bounds = [round(at * len(options) / parts) for at in range(parts + 1)]
    return [options[low:high] for low, high in itertools.pairwise(bounds) if high > low]
