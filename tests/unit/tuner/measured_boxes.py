"""A box whose speed is a function of its options, for searches that measure."""

from __future__ import annotations

import itertools
import random

from boxwright.bench.figures import Figures
from boxwright.bench.run import Place, Point, Run
from boxwright.tuner.trial import FAILED, MEASURED, REFUSED, Goal, Trial

PLACE = Place(1, None)
GOAL = Goal("decode", "decode", PLACE)
_EMPTY = dict.fromkeys(Figures.__dataclass_fields__)


def figures(value):
    zero = dict.fromkeys(("prompt_tokens", "output_tokens", "completed", "failed", "strangers"), 0)
    return Figures(**{**_EMPTY, **zero, "decode": value, "throttled": {}})


def run(identity, values):
    points = (Point(PLACE, 4, tuple(map(figures, values)), None),)
    return Run(identity, "qwen", "r", "i", "m", 1.0, points, 0, {}, {}, {})


class Speedy:
    """speed: options -> tokens a second, or a text: why it cannot be tried. noise: share of the speed."""

    def __init__(self, speed, noise=0.01, repeats=3):
        self.speed, self.noise, self.repeats = speed, noise, repeats
        self.asked = []
        self._random = random.Random(1)
        self._ids = itertools.count()

    def try_out(self, candidate):
        self.asked.append(candidate)
        speed = self.speed(dict(candidate.options))
        if isinstance(speed, str):
            status = REFUSED if speed.startswith("refused") else FAILED
            return Trial(candidate, status, why=speed)
        values = [speed * (1 + self._random.gauss(0, self.noise)) for _ in range(self.repeats)]
        return Trial(candidate, MEASURED, (run(f"run{next(self._ids)}", values),), seconds=1.0)

    def drive(self, asking, most=1000):
        try:
            candidate = next(asking)
            for count in itertools.count():
                candidate = asking.send(self.try_out(candidate) if count < most else None)
        except StopIteration:
            return
