"""The cards of a host and of each deployment, as far as they are known before and after a driver is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from boxwright.catalog import CardKind, Catalog, reading
from boxwright.facts.model import MIB, Card, HostFacts
from boxwright.spec.box import Box, Deployment


@dataclass(frozen=True)
class PlannedCard:
    """A card to plan on: what the host says of it, and its kind in the catalog.

    kind: None for a card that the catalog does not know. total_mib, reserved_mib: None where neither knows.
    """

    card: Card
    kind: CardKind | None

    @property
    def index(self) -> int:
        """Its number for nvidia-smi."""
        return self.card.index

    @property
    def title(self) -> str:
        """What a person calls it."""
        if self.kind:
            return self.kind.name
        return self.card.name or f"a card with PCI id {self.card.pci_id or 'unknown'}"

    @property
    def total_mib(self) -> int | None:
        """Its memory."""
        return self.card.memory_total_mib or (self.kind.memory_mib if self.kind else None)

    @property
    def usable_bytes(self) -> int | None:
        """Memory that programs get: total less what the driver keeps."""
        if self.card.memory_total_mib and self.card.memory_reserved_mib is not None:
            return (self.card.memory_total_mib - self.card.memory_reserved_mib) * MIB
        return self.kind.usable_mib * MIB if self.kind else None

    @property
    def capability(self) -> tuple[int, ...] | None:
        """Compute capability, (8, 6)."""
        said = self.card.compute_capability or (self.kind.compute_capability if self.kind else None)
        return reading.version(said) if said else None


def of_host(facts: HostFacts, catalog: Catalog) -> tuple[PlannedCard, ...]:
    """Every card of the host in index order."""
    return tuple(
        PlannedCard(card, catalog.recognise(card.name, card.pci_id, card.memory_total_mib))
        for card in facts.cards
    )


def assign(box: Box, cards: Sequence[PlannedCard]) -> dict[int, tuple[int, ...]]:
    """Place of each deployment in the list -> indices of its cards.

    A deployment that names cards gets them. One that does not gets as many of the cards nobody named as it
    has parallel ranks; without a number, all of them when it is the only such one, else one each.
    """
    known = [card.index for card in cards]
    named = {index for deployment in box.deployments for index in deployment.gpus or ()}
    free = [index for index in known if index not in named]
    open_ended = [
        place
        for place, deployment in enumerate(box.deployments)
        if deployment.gpus is None and deployment.tensor_parallel is None
    ]
    assigned: dict[int, tuple[int, ...]] = {}
    for place, deployment in enumerate(box.deployments):
        if deployment.gpus is not None:
            assigned[place] = deployment.gpus
        elif deployment.tensor_parallel is not None:
            count = max(1, deployment.tensor_parallel * deployment.pipeline_parallel)
            assigned[place], free = tuple(free[:count]), free[count:]
    for place in open_ended:
        count = len(free) if len(open_ended) == 1 else max(1, box.deployments[place].pipeline_parallel)
        assigned[place], free = tuple(free[:count]), free[count:]
    return assigned


def of_deployment(
    deployment: Deployment, indices: Sequence[int], cards: Sequence[PlannedCard]
) -> tuple[PlannedCard, ...]:
    """The cards with these indices that the host has."""
    by_index = {card.index: card for card in cards}
    return tuple(by_index[index] for index in indices if index in by_index)
