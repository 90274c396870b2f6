"""Two runs, or two releases with all their runs, figure by figure: which differences are more than noise."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from boxwright.bench.figures import COMPARED, KEYS
from boxwright.bench.noise import LEAST, LEVEL, holm, welch
from boxwright.bench.run import Place, Run


@dataclass(frozen=True)
class Difference:
    """One figure at one place, median against median.

    change: of the first median. p: corrected chance that such a difference is noise, None where the repeats
    are too few to say. verdict: better, worse, noise, or unknown.
    """

    place: Place
    figure: str
    first: float
    second: float
    repeats: tuple[int, int]
    change: float
    p: float | None
    verdict: str

    def to_json(self) -> dict[str, Any]:
        """Plain values by stable keys."""
        return {**asdict(self), "figure": KEYS[self.figure], "repeats": list(self.repeats)}


def compare(first: Sequence[Run], second: Sequence[Run]) -> list[Difference]:
    """Every figure that both sides tell at the same place; repeats of several runs are taken together."""
    pairs = []
    for place in places(first):
        for name in COMPARED:
            ours, theirs = _values(first, place, name), _values(second, place, name)
            if ours and theirs and statistics.median(ours):
                pairs.append((place, name, ours, theirs))
    chances = [welch(ours, theirs) for _, _, ours, theirs in pairs]
    corrected = iter(holm([one for one in chances if one is not None]))
    return [
        _difference(place, name, ours, theirs, None if chance is None else next(corrected))
        for (place, name, ours, theirs), chance in zip(pairs, chances, strict=True)
    ]


def difference(first: Sequence[Run], second: Sequence[Run], place: Place, name: str) -> Difference | None:
    """One figure at one place, which was chosen before anything was measured; None where a side lacks it.

    Its chance needs no correction: no other figure could have been the one that differs.
    """
    ours, theirs = _values(first, place, name), _values(second, place, name)
    if not ours or not theirs or not statistics.median(ours):
        return None
    return _difference(place, name, ours, theirs, welch(ours, theirs))


def places(runs: Sequence[Run]) -> list[Place]:
    """All places that were measured, each once."""
    return list(dict.fromkeys(point.place for run in runs for point in run.points))


def _values(runs: Sequence[Run], place: Place, name: str) -> list[float]:
    return [value for run in runs if (point := run.at(place)) for value in point.values(name)]


def _difference(
    place: Place, name: str, ours: Sequence[float], theirs: Sequence[float], p: float | None
) -> Difference:
    first, second = statistics.median(ours), statistics.median(theirs)
    change = second / first - 1
    if p is None:
        verdict = "unknown"
    elif p >= LEVEL or abs(change) < LEAST:
        verdict = "noise"
    else:
        verdict = "better" if (change > 0) == (COMPARED[name] == "more") else "worse"
    return Difference(place, name, first, second, (len(ours), len(theirs)), change, p, verdict)
