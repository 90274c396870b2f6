"""What is known of the world: cards, models, engines, images.

Data files with their sources, and their loaders.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from boxwright.catalog import cards, images, models, options
from boxwright.catalog.cards import CardKind
from boxwright.catalog.images import Images
from boxwright.catalog.models import Drafter, ModelEntry
from boxwright.catalog.options import OptionTable


@dataclass(frozen=True)
class Catalog:
    """The whole catalog. models: by id. options: engine -> its options by release.

    draft_classes: method -> class of its draft models -> engine -> first release.
    """

    cards: tuple[CardKind, ...]
    models: Mapping[str, ModelEntry]
    drafters: tuple[Drafter, ...]
    images: Images
    options: Mapping[str, OptionTable] = field(repr=False)
    draft_classes: Mapping[str, Mapping[str, Mapping[str, str]]]

    def card(self, identity: str) -> CardKind | None:
        """A kind of card by its id."""
        return next((kind for kind in self.cards if kind.id == identity), None)

    def recognise(self, name: str | None, pci_id: str, memory_mib: int | None) -> CardKind | None:
        """The kind of a found card, None for one that the catalog does not know."""
        return cards.recognise(self.cards, name, pci_id, memory_mib)

    def drafter(self, model: str | None, method: str) -> Drafter | None:
        """The drafter of a method for a model of the catalog."""
        return next((one for one in self.drafters if one.method == method and model in one.targets), None)


@cache
def load() -> Catalog:
    """The catalog of this installation."""
    entries, drafters = models.load()
    return Catalog(
        cards.load(),
        {entry.id: entry for entry in entries},
        drafters,
        images.load(),
        {engine: options.load(engine) for engine in ("vllm", "sglang")},
        models.draft_classes(),
    )


__all__ = ["CardKind", "Catalog", "Drafter", "Images", "ModelEntry", "OptionTable", "load"]
