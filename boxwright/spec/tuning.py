"""The declared limits of the cards: of the box, and of single cards over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from boxwright.spec.decode import INVALID, READ, Decoder


@dataclass(frozen=True)
class Limits:
    """Limits of one card. Clocks in MHz, power in W; None is the card's own."""

    min_clock_mhz: int = 0
    max_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    power_limit_w: int | None = None

    @property
    def clocks_mhz(self) -> tuple[int, ...]:
        """The range of graphics clocks, empty for a free one."""
        return () if self.max_clock_mhz is None else (self.min_clock_mhz, self.max_clock_mhz)


def _own_limits(decode: Decoder, value: object, path: str) -> object:
    """Card -> its own limits; a null in them is the card's own value, and not the same as one left out."""
    cards = decode.value(Mapping[str, object], value, path)
    if cards is INVALID:
        return INVALID
    wrong = [key for key, one in cards.items() if decode.structure(Limits, one, f"{path}.{key}") is INVALID]
    return INVALID if wrong else {key: dict(one) for key, one in cards.items()}


@dataclass(frozen=True)
class Tuning:
    """Limits of every card: variables gpu_tuning_*. Clocks in MHz, power in W; None leaves it as it is.

    cards: index or UUID -> limits of that card alone, over those of the box; the UUID's before the index's.
    """

    persistence: bool = True
    min_clock_mhz: int = 0
    max_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    power_limit_w: int | None = None
    cards: Mapping[str, Mapping[str, int | None]] = field(default_factory=dict, metadata={READ: _own_limits})
    required: bool = False

    def key(self, index: int, uuid: str | None) -> str | None:
        """The entry of `cards` for a card, None where it has none."""
        return next((key for key in (uuid, str(index)) if key is not None and key in self.cards), None)

    def of(self, index: int, uuid: str | None) -> Limits:
        """What is declared for a card."""
        own = self.cards.get(self.key(index, uuid) or "", {})
        values = {name.name: own.get(name.name, getattr(self, name.name)) for name in fields(Limits)}
        return Limits(**{**values, "min_clock_mhz": values["min_clock_mhz"] or 0})

    def variable(self, name: str, index: int, uuid: str | None) -> str:
        """Where a card's limit is declared: gpu_tuning_power_limit_w, gpu_tuning_cards.0.power_limit_w."""
        key = self.key(index, uuid)
        own = key is not None and name in self.cards[key]
        return f"gpu_tuning_cards.{key}.{name}" if own else f"gpu_tuning_{name}"
