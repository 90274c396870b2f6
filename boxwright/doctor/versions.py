"""Ranges of versions: `>=0.20.2,<0.33`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_BOUND = re.compile(r"(>=|<=|<|>|==)\s*(\d+(?:\.\d+)*)")
_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge, "<=": operator.le, "<": operator.lt, ">": operator.gt, "==": operator.eq,
}  # fmt: skip


@dataclass(frozen=True)
class Versions:
    """A range: all of its bounds must hold."""

    bounds: tuple[tuple[str, tuple[int, ...]], ...]

    @classmethod
    def parse(cls, text: str) -> Versions:
        """Read a range. Raises ValueError."""
        bounds = []
        for part in str(text).split(","):
            found = _BOUND.fullmatch(part.strip())
            if not found:
                raise ValueError(f"{text!r} is no range of versions such as >=0.20.2,<0.33")
            bounds.append((found.group(1), numbers(found.group(2))))
        return cls(tuple(bounds))

    def contains(self, version: str) -> bool:
        """Whether a version is in the range; one without numbers is in every range."""
        own = numbers(version)
        return not own or all(_TESTS[test](own, bound) for test, bound in self.bounds)


def numbers(version: str) -> tuple[int, ...]:
    """`v0.32.0+cpu` -> (0, 32, 0); empty when it begins with no number."""
    found = re.match(r"v?(\d{1,9}(?:\.\d{1,9}){0,5})", version)
    return tuple(int(part) for part in found.group(1).split(".")) if found else ()
