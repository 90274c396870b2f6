"""Rules about clocks and power limits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from boxwright.planner.cards import PlannedCard
from boxwright.planner.case import Case, Host
from boxwright.planner.rules.registry import Note, host_gate, note

POWER = "https://github.com/noonghunna/club-3090/blob/main/docs/HARDWARE.md"


def _power_range(card: PlannedCard) -> tuple[float | None, float | None]:
    """Lowest and highest limit: the card's own, else the catalog's; None where neither says a number."""
    power, kind = card.card.power, card.kind
    return (
        _finite(power.min, kind.power_min_w if kind else None),
        _finite(power.max, kind.power_max_w if kind else None),
    )


def _finite(*said: float | None) -> float | None:
    return next((one for one in said if one is not None and math.isfinite(one)), None)


@host_gate("power-limit-out-of-range", source=POWER)
def power_limit(host: Host, cases: Sequence[Case]) -> Iterator[Note]:
    """A card's firmware takes limits from its lowest to its highest: an RTX 5090 none below 400 W.

    nvidia-smi refuses others, in some cases with exit status 0. To draw less, lock the clocks.
    """
    asked = host.box.tuning.power_limit_w
    if asked is None:
        return
    for card in host.cards:
        low, high = _power_range(card)
        if (low is None or asked >= low) and (high is None or asked <= high):
            continue
        span = (
            f"{low:g} to {high:g} W"
            if low is not None and high is not None
            else f"at least {low:g} W"
            if low is not None
            else f"at most {high:g} W"
        )
        too_low = low is not None and asked < low
        fix = [f"gpu_tuning_power_limit_w: {low if too_low else high:g}"]
        if too_low:
            fix.append("gpu_tuning_max_clock_mhz: … draws less than the lowest limit")
        yield note(
            f"card {card.index} ({card.title}) takes power limits of {span}; {asked:g} W is declared",
            *fix,
            at="gpu_tuning_power_limit_w",
        )
        return


@host_gate("clock-out-of-range", source="https://docs.nvidia.com/deploy/nvidia-smi/index.html")
def clock(host: Host, cases: Sequence[Case]) -> Iterator[Note]:
    """A clock lock is a range of graphics clocks within what the card's hardware knows."""
    tuning = host.box.tuning
    low, high = tuning.min_clock_mhz, tuning.max_clock_mhz
    if high is None:
        return
    if low > high:
        yield note(
            f"the lowest clock {low} MHz is above the highest, {high} MHz",
            "gpu_tuning_min_clock_mhz: 0",
            at="gpu_tuning_min_clock_mhz",
        )
        return
    for card in host.cards:
        most = card.card.clocks.max_graphics or (card.kind.clock_graphics_mhz if card.kind else None)
        if most is not None and high > most:
            yield note(
                f"card {card.index} ({card.title}) knows graphics clocks up to {most} MHz; {high} is "
                f"declared",
                f"gpu_tuning_max_clock_mhz: {most} or less",
                at="gpu_tuning_max_clock_mhz",
            )
            return
