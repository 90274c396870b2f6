"""Persistence, clock range and power limit of NVIDIA cards: read, checked against the cards, compared."""

from __future__ import annotations

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

    def text(self) -> str:
        """For a person."""
        return "card %d (%s)" % (self.number, self.name)


class Declared(NamedTuple):
    """What was asked for: clocks in MHz, power in W; None leaves the card's own."""

    persistence: bool
    min_clock_mhz: int
    max_clock_mhz: Optional[int]
    power_limit_w: Optional[float]


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
        )
        for row in answer.rows
    ]


def out_of_range(card: Card, declared: Declared) -> List[str]:
    """What the card would refuse or not keep, each with the range that it takes."""
    found = []
    watts, clock = declared.power_limit_w, declared.max_clock_mhz
    lowest, highest = card.lowest, card.highest
    if watts is not None and lowest is not None and highest is not None and not lowest <= watts <= highest:
        found.append(
            "power limit %g W is outside what %s takes: %g to %g W (default %g W)"
            % (watts, card.text(), lowest, highest, card.default or highest)
        )
    if clock is not None and card.max_clock is not None and clock > card.max_clock:
        found.append("clock %d MHz is above the highest of %s: %d MHz" % (clock, card.text(), card.max_clock))
    if clock is not None and declared.min_clock_mhz > clock:
        found.append("the lowest clock %d MHz is above the highest %d MHz" % (declared.min_clock_mhz, clock))
    return found


def config(cards: List[Card], declared: Declared) -> Dict[str, Any]:
    """What the unit applies, by UUID (indices change when a card is added), beside what was declared."""
    clocks = None if declared.max_clock_mhz is None else [declared.min_clock_mhz, declared.max_clock_mhz]
    goal = {
        "persistence": declared.persistence,
        "clocks_mhz": clocks,
        "power_limit_w": declared.power_limit_w,
    }
    return dict(declared._asdict(), format=1, cards={card.uuid: goal for card in cards})


def drift(cards: List[Card], declared: Declared, receipts: Dict[str, Any]) -> List[str]:
    """Where the cards are not as declared. No query tells a clock range: its receipt stands for it."""
    found = []
    unsupported = receipts.get("unsupported", {})
    for card in cards:
        receipt, spared = receipts.get("cards", {}).get(card.uuid, {}), unsupported.get(card.uuid, [])
        if declared.persistence and card.persistence is False and "persistence" not in spared:
            found.append("%s: persistence is off" % card.text())
        goal = declared.power_limit_w
        if goal is None and "power_limit_w" in receipt:
            goal = card.default
        limit = None if "power limit" in spared else card.limit
        if goal is not None and limit is not None and abs(limit - goal) > TOLERANCE_W:
            found.append("%s: power limit is %g W, not %g W" % (card.text(), limit, goal))
        clocks = None if declared.max_clock_mhz is None else [declared.min_clock_mhz, declared.max_clock_mhz]
        if receipt.get("clocks_mhz") != clocks and not (clocks and "clocks" in spared):
            found.append("%s: clock range is %s" % (card.text(), "not locked" if clocks else "locked"))
    return found
