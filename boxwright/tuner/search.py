"""The better setting, one kind of option after the other: a search that asks for what is to be measured.

Of each kind, every value is tried beside the best setting so far, and takes its place where it is better by
more than noise; not every combination is tried. Pure: it is sent what came of each candidate, so that what
was measured before an interruption is told to it again, and it goes on from there.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

from boxwright.bench.comparison import Difference
from boxwright.tuner.proposals import Sweep, named
from boxwright.tuner.trial import Candidate, Goal, OutOfTime, Trial, settled, tried

#: Rounds over all kinds: what was better under one setting need not be under the next.
ROUNDS = 2


@dataclass(frozen=True)
class Step:
    """A trial, how it stands to the best one before it, and whether it took its place."""

    trial: Trial
    difference: Difference | None
    taken: bool


@dataclass(frozen=True)
class Found:
    """What a search came to. ended: why it stopped before everything was tried; empty where it did not."""

    base: Trial
    best: Trial
    steps: tuple[Step, ...]
    ended: str
    overall: Difference | None

    @property
    def better(self) -> bool:
        """Whether a better setting than the declared one was found."""
        return bool(self.best.candidate.options)


class Searching:
    """A search under way; `found` is what it has come to, also after it was broken off."""

    def __init__(self, sweeps: Sequence[Sweep], goal: Goal, most: int) -> None:
        self._sweeps, self._goal, self._most = sweeps, goal, most
        self._steps: list[Step] = []
        self._base: Trial | None = None
        self._best: Trial | None = None
        self._ended = ""

    @property
    def found(self) -> Found | None:
        """What is known; None before the declaration itself was measured."""
        if self._base is None or self._best is None:
            return None
        overall = self._goal.difference(self._base, self._best) if self._best is not self._base else None
        return Found(self._base, self._best, tuple(self._steps), self._ended, overall)

    def candidates(self) -> Generator[Candidate, Trial | None, None]:
        """Ask for one candidate after the other. The first is the declaration itself."""
        try:
            self._base = self._best = yield from tried(Candidate({}, named({})))
            if not self._base.measured:
                return
            seen = [dict(self._base.candidate.options)]
            for _ in range(ROUNDS):
                before = self._best
                for sweep in self._sweeps:
                    yield from self._sweep(sweep, seen)
                if self._best.candidate == before.candidate or self._ended:
                    return
        except OutOfTime:
            self._ended = "the time was over (--minutes)"

    def _surer(self, best: Trial) -> None:
        """The best so far was measured once more."""
        for number, step in enumerate(self._steps):
            if step.trial is self._best:
                self._steps[number] = replace(step, trial=best)
        if self._base is self._best:
            self._base = best
        self._best = best

    def _sweep(self, sweep: Sweep, seen: list[dict[str, object]]) -> Generator[Candidate, Trial | None, None]:
        for value in sweep.tried:
            assert self._best is not None
            options = {**self._best.candidate.options, **value.options}
            if options in seen:
                continue
            if len(self._steps) >= self._most:
                self._ended = f"{self._most} candidates were tried (--candidates)"
                return
            seen.append(options)
            trial = yield from tried(Candidate(options, named(options)))
            difference = None
            if trial.measured:
                try:
                    best, trial, difference = yield from settled(self._goal, self._best, trial)
                    self._surer(best)
                except OutOfTime:
                    self._steps.append(Step(trial, self._goal.difference(self._best, trial), False))
                    raise
            taken = difference is not None and difference.verdict == "better"
            self._steps.append(Step(trial, difference, taken))
            if taken:
                self._best = trial
