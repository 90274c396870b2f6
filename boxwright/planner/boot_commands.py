"""Commands at boot that set the cards beside Boxwright's unit: which of them the declaration covers."""

from __future__ import annotations

from boxwright.facts.kept import BootCommand
from boxwright.facts.model import Card
from boxwright.facts.parsers import smi_commands
from boxwright.planner.case import Host


def taken_over(host: Host) -> list[BootCommand]:
    """Lines of rc.local that set what is declared: the unit's business from now on."""
    return [
        command for command in host.facts.kept.boot_commands if command.movable and covered(host, command)
    ]


def covered(host: Host, command: BootCommand) -> bool:
    """Whether every setting of a command is declared for every card that it is about."""
    cards = [
        card
        for card in host.facts.cards
        if not card.lost and smi_commands.is_card(command.card, card.index, card.uuid, card.pci_bus)
    ]
    return bool(cards) and all(_sets(host, card, command.what) for card in cards)


def _sets(host: Host, card: Card, what: str) -> bool:
    limits = host.box.tuning.of(card.index, card.uuid)
    declared = {
        "persistence": host.box.tuning.persistence or None,
        "clocks": limits.max_clock_mhz,
        "memory clocks": limits.memory_clock_mhz,
        "power limit": limits.power_limit_w,
    }
    return declared.get(what) is not None
