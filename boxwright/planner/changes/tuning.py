"""Persistence, clock lock and power limit: what the role gpu_tuning would change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from boxwright.facts.kept import LIMITS_AT_BOOT, CardLimits
from boxwright.facts.model import Card
from boxwright.planner.case import Host
from boxwright.planner.changes.change import OFF, ON, Change
from boxwright.planner.rules.words import listed
from boxwright.spec.box import Tuning

ROLE = "gpu_tuning"
#: What firmware rounds away of a power limit, in W.
TOLERANCE_W = 1.0
_NO_LIMITS = CardLimits()


def changes(host: Host) -> Iterator[Change]:
    """What the cards have otherwise than declared, then what the host would set at its next boot."""
    tuning, cards = host.box.tuning, [card for card in host.facts.cards if not card.lost]
    found = [*_clocks(host, cards), *_power(host, cards), *_persistence(host, cards)]
    yield from found
    kept = host.facts.tuning
    declared = (tuning.persistence, tuning.min_clock_mhz, tuning.max_clock_mhz, tuning.power_limit_w)
    names = ("persistence", "min_clock_mhz", "max_clock_mhz", "power_limit_w")
    same = bool(kept) and tuple(kept.get(name) for name in names) == declared
    at_boot = same and LIMITS_AT_BOOT in host.facts.kept.files
    if not found and not at_boot:
        yield Change(ROLE, "limits at boot", "other ones" if kept else None, _declared(tuning))


def _declared(tuning: Tuning) -> str:
    """All limits in a few words."""
    words = [f"persistence {ON if tuning.persistence else OFF}"]
    if tuning.max_clock_mhz is not None:
        words.append(_range((tuning.min_clock_mhz, tuning.max_clock_mhz)) or "")
    if tuning.power_limit_w is not None:
        words.append(f"{tuning.power_limit_w:g} W")
    return listed(words)


def _limits(host: Host, card: Card) -> CardLimits:
    return host.facts.kept.limits.get(card.uuid or "", _NO_LIMITS)


def _range(clocks: Sequence[int]) -> str | None:
    return f"{clocks[0]}–{clocks[1]} MHz" if len(clocks) == 2 else None  # noqa: RUF001


def _clocks(host: Host, cards: Sequence[Card]) -> Iterator[Change]:
    """No query tells a locked range: what nvidia-smi answered since the boot stands for it."""
    tuning = host.box.tuning
    wanted = () if tuning.max_clock_mhz is None else (tuning.min_clock_mhz, tuning.max_clock_mhz)
    off = [
        card
        for card in cards
        if _limits(host, card).clocks_mhz != wanted
        and not (wanted and "clocks" in _limits(host, card).spared)
    ]
    if off or (wanted and not cards):
        was = _range(_limits(host, off[0]).clocks_mhz) if off else None
        yield Change(ROLE, "clock lock" + _of(off, cards), was, _range(wanted))


def _power(host: Host, cards: Sequence[Card]) -> Iterator[Change]:
    wanted = host.box.tuning.power_limit_w
    if wanted is not None and not cards:
        yield Change(ROLE, "power limit", None, f"{wanted:g} W")
        return
    off: dict[tuple[str, str], list[Card]] = {}
    for card in cards:
        limits, power = _limits(host, card), card.power
        goal = wanted if wanted is not None else power.default if limits.power_limit_w is not None else None
        if goal is None or "power limit" in limits.spared:
            continue
        if power.limit is None and card.persistence is not None:
            continue  # a card that tells no limit takes none
        if power.limit is None or abs(power.limit - goal) > TOLERANCE_W:
            has = f"{power.limit:g} W" if power.limit is not None else "default"
            off.setdefault((has, f"{goal:g} W"), []).append(card)
    for (has, to), which in off.items():
        yield Change(ROLE, "power limit" + _of(which, cards), has, to)


def _persistence(host: Host, cards: Sequence[Card]) -> Iterator[Change]:
    if not host.box.tuning.persistence:
        return
    off = [
        card
        for card in cards
        if card.persistence is not True and "persistence" not in _limits(host, card).spared
    ]
    if off:
        yield Change(ROLE, "persistence" + _of(off, cards), OFF, ON)


def _of(some: Sequence[Card], cards: Sequence[Card]) -> str:
    """` of card 1`, and nothing where all of them are meant."""
    if len(some) == len(cards):
        return ""
    return f" of card{'s' if len(some) > 1 else ''} {listed(str(card.index) for card in some)}"
