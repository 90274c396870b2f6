"""Persistence, clock range and power limit of NVIDIA cards: read, checked against the cards, compared."""

from __future__ import annotations

import json
from typing import Any, Dict, List, NamedTuple, Optional

from ansible.module_utils import card_answer, nvidia_smi

FIELDS = (
    "index",
    "uuid",
    "name",
    "persistence_mode",
    "power.limit",
    "power.default_limit",
    "power.min_limit",
    "power.max_limit",
    "clocks.max.graphics",
    "clocks.max.memory",
    "pci.bus_id",
)
#: What firmware rounds away of a power limit, in W.
TOLERANCE_W = 1.0


class Card(NamedTuple):
    """A card as nvidia-smi tells it. Power in W, clocks in MHz; None where the card does not say."""

    number: int
    uuid: str
    name: str
    persistence: Optional[bool]
    limit: Optional[float]
    default: Optional[float]
    lowest: Optional[float]
    highest: Optional[float]
    max_clock: Optional[int]
    max_memory_clock: Optional[int] = None
    bus: str = ""

    def text(self) -> str:
        """For a person."""
        return "card %d (%s)" % (self.number, self.name)


class Goal(NamedTuple):
    """What one card shall have: clocks in MHz (a range, the memory's), power in W; None is the card's own."""

    persistence: bool
    clocks_mhz: Optional[List[int]]
    memory_clock_mhz: Optional[int]
    power_limit_w: Optional[float]


class Declared(NamedTuple):
    """What was asked for: clocks in MHz, power in W; None leaves the card's own.

    cards: limits of single cards by index or UUID, over the others.
    """

    persistence: bool
    min_clock_mhz: int
    max_clock_mhz: Optional[int]
    memory_clock_mhz: Optional[int]
    power_limit_w: Optional[float]
    cards: Dict[str, Dict[str, Optional[int]]]

    def key(self, card: Card) -> Optional[str]:
        """The card's own entry."""
        return next((key for key in (card.uuid, str(card.number)) if key in self.cards), None)

    def value(self, card: Card, name: str) -> Any:
        """What is declared for a card."""
        own = self.cards.get(self.key(card) or "", {})
        return own[name] if name in own else getattr(self, name)

    def variable(self, card: Card, name: str) -> str:
        """Where it is declared."""
        key = self.key(card)
        if key is not None and name in self.cards[key]:
            return "gpu_tuning_cards.%s.%s" % (key, name)
        return "gpu_tuning_%s" % name

    def goal(self, card: Card) -> Goal:
        """All of it."""
        highest = self.value(card, "max_clock_mhz")
        return Goal(
            self.persistence,
            None if highest is None else [self.value(card, "min_clock_mhz") or 0, highest],
            self.value(card, "memory_clock_mhz"),
            self.value(card, "power_limit_w"),
        )


class NoCards(Exception):
    """nvidia-smi told no cards; the text says why. outcome: a word of nvidia_smi.outcome."""

    def __init__(self, outcome: str, text: str) -> None:
        super().__init__(text)
        self.outcome = outcome


def read_cards() -> List[Card]:
    """The cards in one call of nvidia-smi. Raises NoCards, also where only some of them answer."""
    answer = card_answer.ask(FIELDS)
    if answer.why or not answer.rows:
        raise NoCards(answer.outcome, answer.why or "nvidia-smi lists none")
    return [
        Card(
            number=int(row["index"] or 0),
            uuid=row["uuid"] or "",
            name=row["name"] or "",
            persistence=nvidia_smi.enabled(row["persistence_mode"]),
            limit=nvidia_smi.number(row["power.limit"]),
            default=nvidia_smi.number(row["power.default_limit"]),
            lowest=nvidia_smi.number(row["power.min_limit"]),
            highest=nvidia_smi.number(row["power.max_limit"]),
            max_clock=nvidia_smi.whole(row["clocks.max.graphics"]),
            max_memory_clock=nvidia_smi.whole(row["clocks.max.memory"]),
            bus=row["pci.bus_id"] or "",
        )
        for row in answer.rows
    ]


def unknown(cards: List[Card], declared: Declared) -> List[str]:
    """Entries for cards that are not there."""
    names = {name for card in cards for name in (card.uuid, str(card.number))}
    there = ", ".join("%d (%s)" % (card.number, card.uuid) for card in cards)
    return [
        "gpu_tuning_cards.%s: no such card; there are %s" % (key, there)
        for key in declared.cards
        if key not in names
    ]


def out_of_range(card: Card, declared: Declared) -> List[str]:
    """What the card would refuse or not keep, each with its variable and the range that the card takes."""
    found = []
    goal, lowest, highest = declared.goal(card), card.lowest, card.highest
    watts = goal.power_limit_w
    if watts is not None and lowest is not None and highest is not None and not lowest <= watts <= highest:
        found.append(
            "%s: power limit %g W is outside what %s takes: %g to %g W (default %g W)"
            % (
                declared.variable(card, "power_limit_w"),
                watts,
                card.text(),
                lowest,
                highest,
                card.default or highest,
            )
        )
    variable = declared.variable(card, "max_clock_mhz")
    if goal.clocks_mhz and card.max_clock is not None and goal.clocks_mhz[1] > card.max_clock:
        found.append(
            "%s: clock %d MHz is above the highest of %s: %d MHz"
            % (variable, goal.clocks_mhz[1], card.text(), card.max_clock)
        )
    if goal.clocks_mhz and goal.clocks_mhz[0] > goal.clocks_mhz[1]:
        found.append(
            "%s: the lowest clock %d MHz is above the highest %d MHz"
            % (declared.variable(card, "min_clock_mhz"), goal.clocks_mhz[0], goal.clocks_mhz[1])
        )
    memory = goal.memory_clock_mhz
    if memory is not None and card.max_memory_clock is not None and memory > card.max_memory_clock:
        found.append(
            "%s: memory clock %d MHz is above the highest of %s: %d MHz"
            % (declared.variable(card, "memory_clock_mhz"), memory, card.text(), card.max_memory_clock)
        )
    return found


def config(cards: List[Card], declared: Declared) -> Dict[str, Any]:
    """What the unit applies, by UUID (indices change when a card is added)."""
    goals = {card.uuid: dict(declared.goal(card)._asdict()) for card in cards}
    return {"format": 2, "cards": goals}


def receipts_of(text: Optional[str]) -> Dict[str, Any]:
    """Receipts from their file; none where it is not there, or damaged: what they stood for is done again."""
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    whole = isinstance(found, dict) and all(
        isinstance(found.get(name, {}), dict)
        and all(isinstance(one, kind) for one in found.get(name, {}).values())
        for name, kind in (("cards", dict), ("unsupported", list))
    )
    return found if whole else {}


def current(receipts: Dict[str, Any], load: str) -> Dict[str, Any]:
    """The receipts, none where the driver was loaded anew since: it remembers nothing of them."""
    return receipts if receipts.get("driver_load") == load else {}


def drift(cards: List[Card], declared: Declared, receipts: Dict[str, Any]) -> List[str]:
    """Where the cards are not as declared. No query tells a clock lock: its receipt stands for it."""
    found = []
    unsupported = receipts.get("unsupported", {})
    for card in cards:
        receipt, spared = receipts.get("cards", {}).get(card.uuid, {}), unsupported.get(card.uuid, [])
        wanted = declared.goal(card)
        if wanted.persistence and card.persistence is False and "persistence" not in spared:
            found.append("%s: persistence is off" % card.text())
        goal = wanted.power_limit_w
        if goal is None and "power_limit_w" in receipt:
            goal = card.default
        limit = None if "power limit" in spared else card.limit
        if goal is not None and limit is not None and abs(limit - goal) > TOLERANCE_W:
            found.append("%s: power limit is %g W, not %g W" % (card.text(), limit, goal))
        for name, setting, text in (
            ("clocks_mhz", "clocks", "clock range"),
            ("memory_clock_mhz", "memory clocks", "memory clock"),
        ):
            lock = getattr(wanted, name)
            if receipt.get(name) != lock and not (lock and setting in spared):
                found.append("%s: %s is %s" % (card.text(), text, _lock(receipt.get(name), lock)))
    return found


def _lock(has: Any, wanted: Any) -> str:
    if not wanted:
        return "locked"
    return "not locked" if not has else "locked at %s, not at %s" % (_mhz(has), _mhz(wanted))


def _mhz(lock: Any) -> str:
    return "%d to %d MHz" % tuple(lock) if isinstance(lock, list) else "%s MHz" % lock
