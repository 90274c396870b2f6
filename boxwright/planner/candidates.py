"""Every deployment that a box's cards might serve, before anybody asked whether it fits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from boxwright.catalog import Catalog, ModelEntry
from boxwright.catalog.choices import Choices
from boxwright.catalog.purpose import TEXT
from boxwright.errors import EXIT_BAD_INPUT, UserError
from boxwright.facts.model import HostFacts
from boxwright.planner.cards import PlannedCard
from boxwright.planner.sharing import divides
from boxwright.spec.box import Box, Deployment, ModelRef, Speculative
from boxwright.spec.suggestions import did_you_mean

#: Ranks beyond this number no engine shares one model of the catalog by.
_MOST_RANKS = 16
#: Ports to look for a free one among.
_PORTS = range(8000, 8100)


@dataclass(frozen=True)
class Wish:
    """What is wanted of a choice.

    context: tokens that one sequence must be able to have. concurrency: sequences of `sequence` tokens that
    must stay resident at once. image: instead of the catalog's.
    """

    context: int
    concurrency: int
    sequence: int
    image: str | None = None

    @classmethod
    def of(cls, choices: Choices, context: int | None, concurrency: int | None, image: str | None) -> Wish:
        """The wish, with the catalog's figures for what is not said."""
        longest = context or choices.context
        return cls(longest, concurrency or choices.concurrency, min(choices.sequence, longest), image)


def models(catalog: Catalog, choices: Choices, family: str) -> tuple[ModelEntry, ...]:
    """The models to compare: all but those to try things with, or those whose name begins with `family`.

    Only such as write text: what is compared is how they do that. Raises UserError when none does.
    """
    if not family:
        return tuple(entry for entry in _writing(catalog) if entry.id not in choices.trials)
    named = [entry for entry in catalog.models.values() if entry.id.startswith(family.lower())]
    found = tuple(entry for entry in _writing(catalog) if entry in named)
    if named and not found:
        raise UserError(
            f"the models whose name begins with {family!r} serve {named[0].serves}: how fast they write is "
            "nothing to compare",
            status=EXIT_BAD_INPUT,
            ways_out=(f"declare one (model: {named[0].id}), and see `invoke plan` for what it takes",),
        )
    if not found:
        raise UserError(
            f"no model of the catalog has a name that begins with {family!r}",
            status=EXIT_BAD_INPUT,
            ways_out=(did_you_mean(family, catalog.models),),
        )
    return found


def _writing(catalog: Catalog) -> tuple[ModelEntry, ...]:
    return tuple(entry for entry in catalog.models.values() if entry.serves == TEXT)


def candidates(
    box: Box,
    facts: HostFacts,
    cards: Sequence[PlannedCard],
    catalog: Catalog,
    choices: Choices,
    entries: Iterable[ModelEntry],
) -> Iterator[Deployment]:
    """Model x tensor parallelism over cards of one kind x KV cache x drafts; images are tried later.

    Name, port and address are those of the box's first deployment, where it declares one: its own container
    is then not taken for somebody else's.
    """
    groups = _groups(cards)
    for entry in entries:
        first = start(box, facts, entry)
        for group in groups:
            for ranks in range(1, min(len(group), _MOST_RANKS) + 1):
                if not divides(entry.architecture, ranks):
                    continue
                placed = replace(
                    first,
                    gpus=None if ranks == len(cards) else tuple(card.index for card in group[:ranks]),
                    tensor_parallel=ranks if ranks > 1 else None,
                )
                for cache in choices.kv_cache:
                    for drafts in _drafts(entry, catalog, choices):
                        yield replace(placed, kv_cache=cache, speculative=drafts)


def _groups(cards: Sequence[PlannedCard]) -> list[list[PlannedCard]]:
    """The cards that answer, by kind: ranks on cards of several kinds wait for the slowest."""
    groups: dict[str, list[PlannedCard]] = {}
    for card in cards:
        if not card.card.lost:
            groups.setdefault(f"{card.title} {card.total_mib}", []).append(card)
    return list(groups.values())


def start(box: Box, facts: HostFacts, entry: ModelEntry) -> Deployment:
    """What all deployments of a model on the box begin with; the image is still to say."""
    model = ModelRef(name=entry.id)
    if box.deployments:
        first = box.deployments[0]
        return Deployment(first.name, model, "", port=first.port, bind=first.bind, api_key=first.api_key)
    taken = {listener.port for listener in facts.listening}
    port = next((port for port in _PORTS if port not in taken), _PORTS.start)
    return Deployment(deployment_name(entry), model, "", port=port)


def deployment_name(entry: ModelEntry) -> str:
    """A short name for a deployment of a model: `qwen`."""
    found = re.match(r"[a-z]+", entry.id)
    return found.group() if found else "model"


def _drafts(entry: ModelEntry, catalog: Catalog, choices: Choices) -> Iterator[Speculative]:
    """The ways to draft that there are for the model."""
    for method, tokens in choices.speculative:
        drafter = catalog.drafter(entry.id, method)
        if method == "mtp" and entry.mtp is False:
            continue
        if method == "dflash2" and drafter is None:
            continue
        yield Speculative(method, tokens if tokens or drafter is None else drafter.tokens)
