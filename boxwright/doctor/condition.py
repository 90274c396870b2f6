"""Conditions on what was read from a host: values by name, compared with a bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_COMPARISONS = ("is", "at_least", "below", "above")


class ConditionError(ValueError):
    """A condition in the data that cannot be used."""


@dataclass(frozen=True)
class Condition:
    """A reading and what it must be. A reading that is not known fulfils nothing."""

    reading: str
    comparison: str
    bound: Any

    @classmethod
    def parse(cls, entry: Any) -> Condition:
        """`{reading: acceptance, below: 0.3}`. Raises ConditionError."""
        if isinstance(entry, Mapping) and len(entry) == 2 and "reading" in entry:
            comparison = next(key for key in entry if key != "reading")
            bound = entry[comparison]
            number = isinstance(bound, (int, float)) and not isinstance(bound, bool)
            if comparison == "is" or (comparison in _COMPARISONS and number):
                return cls(str(entry["reading"]), str(comparison), bound)
        raise ConditionError(
            f"{entry!r} is not of the form {{reading: NAME, {'|'.join(_COMPARISONS)}: VALUE}}"
        )

    def holds(self, readings: Mapping[str, Any]) -> bool:
        """Whether the reading is so."""
        value = readings.get(self.reading)
        if value is None:
            return False
        if self.comparison == "is":
            return bool(value == self.bound)
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return False
        if self.comparison == "at_least":
            return bool(value >= self.bound)
        return bool(value < self.bound) if self.comparison == "below" else bool(value > self.bound)
