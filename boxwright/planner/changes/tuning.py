"""Persistence, clock lock and power limit: what the role gpu_tuning would change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from boxwright.facts.kept import LIMITS_AT_BOOT, CardLimits
from boxwright.facts.model import Card
from boxwright.planner.boot_commands import taken_over
from boxwright.planner.case import Host
from boxwright.planner.changes.change import OFF, ON, Change
from boxwright.planner.rules.words import listed
from boxwright.spec.tuning import Limits

ROLE = "gpu_tuning"
#: What firmware rounds away of a power limit, in W.
TOLERANCE_W = 1.0
_NO_LIMITS = CardLimits()


def changes(host: Host) -> Iterator[Change]:
    """What the cards have otherwise than declared, then what the host would set at its next boot."""
    cards = [card for card in host.facts.cards if not card.lost]
    found = [*_locks(host, cards), *_power(host, cards), *_persistence(host, cards)]
    yield from found
    if not found and not (_kept_as_declared(host, cards) and LIMITS_AT_BOOT in host.facts.kept.files):
        yield Change(
            ROLE, "limits at boot", "other ones" if host.facts.tuning else None, _declared(host, cards)
        )
    for command in taken_over(host):
        yield Change(ROLE, f"{command.path}:{command.line}", command.text, None, note="the unit does it")


def _of(host: Host, card: Card) -> Limits:
    return host.box.tuning.of(card.index, card.uuid)


def _kept_as_declared(host: Host, cards: Sequence[Card]) -> bool:
    """Whether the file that the unit reads says what is declared, for each card."""
    kept = host.facts.tuning.get("cards")
    if not isinstance(kept, Mapping) or set(kept) != {card.uuid for card in cards}:
        return False
    return all(_goal(host, card) == _said(kept[card.uuid]) for card in cards)


def _goal(host: Host, card: Card) -> tuple[object, ...]:
    limits = _of(host, card)
    return (
        host.box.tuning.persistence,
        limits.clocks_mhz,
        limits.memory_clock_mhz,
        limits.power_limit_w,
    )


def _said(one: Any) -> tuple[object, ...]:
    if not isinstance(one, Mapping):
        return ()
    clocks = one.get("clocks_mhz")
    return (
        one.get("persistence"),
        tuple(clocks) if isinstance(clocks, (list, tuple)) else (),
        one.get("memory_clock_mhz"),
        one.get("power_limit_w"),
    )


def _declared(host: Host, cards: Sequence[Card]) -> str:
    """All limits in a few words; where they differ by card, of each."""
    texts = {card.index: _words(host, _of(host, card)) for card in cards}
    if len(set(texts.values())) <= 1:
        return next(iter(texts.values()), _words(host, host.box.tuning.of(-1, None)))
    return "; ".join(f"card {index}: {text}" for index, text in texts.items())


def _words(host: Host, limits: Limits) -> str:
    words = [f"persistence {ON if host.box.tuning.persistence else OFF}"]
    if limits.clocks_mhz:
        words.append(_range(limits.clocks_mhz) or "")
    if limits.memory_clock_mhz is not None:
        words.append(f"memory at {limits.memory_clock_mhz} MHz")
    if limits.power_limit_w is not None:
        words.append(f"{limits.power_limit_w:g} W")
    return listed(words)


def _applied(host: Host, card: Card) -> CardLimits:
    return host.facts.kept.limits.get(card.uuid or "", _NO_LIMITS)


def _range(clocks: Sequence[int]) -> str | None:
    return f"{clocks[0]}–{clocks[1]} MHz" if len(clocks) == 2 else None  # noqa: RUF001


def _mhz(clock: int | None) -> str | None:
    return None if clock is None else f"{clock} MHz"


def _locks(host: Host, cards: Sequence[Card]) -> Iterator[Change]:
    """No query tells a locked range: what nvidia-smi answered since the driver was loaded stands for it."""
    yield from _lock(
        host,
        cards,
        ("clock lock", "clocks"),
        lambda applied: _range(applied.clocks_mhz),
        lambda limits: _range(limits.clocks_mhz),
    )
    yield from _lock(
        host,
        cards,
        ("memory clock lock", "memory clocks"),
        lambda applied: _mhz(applied.memory_clock_mhz),
        lambda limits: _mhz(limits.memory_clock_mhz),
    )


def _lock(
    host: Host,
    cards: Sequence[Card],
    names: tuple[str, str],
    has: Callable[[CardLimits], str | None],
    wants: Callable[[Limits], str | None],
) -> Iterator[Change]:
    subject, setting = names
    off: dict[tuple[str | None, str | None], list[Card]] = {}
    for card in cards:
        was, to = has(_applied(host, card)), wants(_of(host, card))
        if was != to and not (to and setting in _applied(host, card).spared):
            off.setdefault((was, to), []).append(card)
    if not cards and (to := wants(host.box.tuning.of(-1, None))):
        off[(None, to)] = []
    for (was, to), which in off.items():
        yield Change(ROLE, subject + _of_cards(which, cards), was, to)


def _power(host: Host, cards: Sequence[Card]) -> Iterator[Change]:
    everywhere = host.box.tuning.power_limit_w
    if everywhere is not None and not cards:
        yield Change(ROLE, "power limit", None, f"{everywhere:g} W")
        return
    off: dict[tuple[str, str], list[Card]] = {}
    for card in cards:
        applied, power, wanted = _applied(host, card), card.power, _of(host, card).power_limit_w
        goal = wanted if wanted is not None else power.default if applied.power_limit_w is not None else None
        if goal is None or "power limit" in applied.spared:
            continue
        if power.limit is None and card.persistence is not None:
            continue  # a card that tells no limit takes none
        if power.limit is None or abs(power.limit - goal) > TOLERANCE_W:
            has = f"{power.limit:g} W" if power.limit is not None else "default"
            off.setdefault((has, f"{goal:g} W"), []).append(card)
    for (has, to), which in off.items():
        yield Change(ROLE, "power limit" + _of_cards(which, cards), has, to)


def _persistence(host: Host, cards: Sequence[Card]) -> Iterator[Change]:
    if not host.box.tuning.persistence:
        return
    off = [
        card
        for card in cards
        if card.persistence is not True and "persistence" not in _applied(host, card).spared
    ]
    if off:
        yield Change(ROLE, "persistence" + _of_cards(off, cards), OFF, ON)


def _of_cards(some: Sequence[Card], cards: Sequence[Card]) -> str:
    """` of card 1`, and nothing where all of them are meant."""
    if len(some) == len(cards):
        return ""
    return f" of card{'s' if len(some) > 1 else ''} {listed(str(card.index) for card in some)}"
