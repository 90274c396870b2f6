"""Which kernel modules drive which cards: open or proprietary, by generation and branch of the driver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from boxwright.catalog import reading

#: Flavors, the one to prefer first.
FLAVORS = ("open", "proprietary")
NEWEST = "newest"


@dataclass(frozen=True)
class Generation:
    """Cards of one architecture.

    devices: ranges of PCI device ids, both ends in. last: flavor -> the last branch with such modules for
    these cards, None while there is none; a flavor that never had any is absent.
    """

    id: str
    name: str
    devices: tuple[tuple[int, int], ...]
    last: dict[str, int | None]

    def drives(self, flavor: str, branch: int) -> bool:
        """Whether the modules of a branch drive these cards."""
        last = self.last.get(flavor, 0)
        return last is None or branch <= last

    @property
    def open_only(self) -> bool:
        """Whether only the open modules know these cards."""
        return tuple(self.last) == ("open",)


@cache
def load() -> tuple[Generation, ...]:
    """All generations."""
    return tuple(
        Generation(
            entry["id"],
            entry["name"],
            tuple((first, last) for first, last in entry["devices"]),
            {
                flavor: None if entry[flavor] == NEWEST else int(entry[flavor])
                for flavor in FLAVORS
                if entry[flavor] is not None
            },
        )
        for entry in reading.yaml_file("kernel_modules.yml")
    )


def of_card(pci_id: str) -> Generation | None:
    """The generation of a card by its PCI id (`10de:2b85`), None for what is no such id."""
    try:
        device = int(pci_id.rpartition(":")[2], 16)
    except ValueError:
        return None
    return next((one for one in load() if any(first <= device <= last for first, last in one.devices)), None)


def flavors(generations: Sequence[Generation], branch: int) -> list[str]:
    """The flavors whose modules of a branch drive all of these cards."""
    return [flavor for flavor in FLAVORS if all(one.drives(flavor, branch) for one in generations)]


def last_branch(generations: Sequence[Generation]) -> tuple[str, int] | None:
    """Flavor and last branch that drives all of these cards, None where there is none or no last one."""
    lasts = {
        flavor: [one.last[flavor] for one in generations]
        for flavor in FLAVORS
        if all(flavor in one.last for one in generations)
    }
    known = {flavor: min(ends) for flavor, found in lasts.items() if (ends := [e for e in found if e])}
    return max(known.items(), key=lambda item: item[1]) if known else None
