"""Rules about which cards there are and who uses them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from boxwright.planner.case import Case, Host
from boxwright.planner.rules.registry import Note, advice, gate, host_advice, host_gate, note
from boxwright.planner.rules.words import listed, shown

CATALOG = "boxwright/catalog/data/cards.yml"
#: Share of a card that deployments divide among them, when somebody asks how.
SHARED = 0.9


def _counted(counts: Counter[str]) -> str:
    return listed(f"{count} {name}" for name, count in sorted(counts.items())) or "none"


@host_gate("cards-differ", source=CATALOG)
def cards_differ(host: Host, cases: Sequence[Case]) -> Note | None:
    """Declared cards are a promise that the plan was made for; a host with others would not do what was
    planned.

    A 5090 D V2 answers like a 5090 and has 24 GB: name, PCI id and memory are compared.
    """
    declared = Counter({cards.model: 0 for cards in host.box.gpus})
    for cards in host.box.gpus:
        declared[cards.model] += cards.count
    if not declared or not host.facts.recorded:
        return None
    found = Counter(card.kind.id if card.kind else card.title for card in host.cards)
    if +declared == found:
        return None
    return note(
        f"{_counted(declared)} declared; the host has {_counted(found)}",
        "declare what is there, or leave box_gpus out",
        "look at the missing card",
        at="box_gpus",
    )


@host_gate("declared-card-unknown", source=CATALOG)
def declared_unknown(host: Host, cases: Sequence[Case]) -> Iterator[Note]:
    """Cards are declared by their names in the catalog."""
    known = [kind.id for kind in host.catalog.cards]
    for cards in host.box.gpus:
        if cards.model not in known:
            yield note(
                f"the catalog has no card named {shown(cards.model)}; it has {listed(sorted(known))}",
                "leave box_gpus out to plan with what the host says",
                at="box_gpus",
            )


@host_advice("card-unknown", source=CATALOG)
def card_unknown(host: Host, cases: Sequence[Case]) -> Iterator[Note]:
    """Of a card that the catalog does not know, memory and limits are known once a driver runs."""
    for card in host.cards:
        if card.kind is None:
            yield note(
                f"{card.title} is not in the catalog"
                + (": its memory is not known before a driver runs" if card.total_mib is None else ""),
                "go on where the driver tells its memory: speed and limits stay unknown",
                "add it to boxwright/catalog/data/cards.yml",
                at="box_gpus",
            )


@gate("card-missing", source="https://docs.nvidia.com/deploy/nvidia-smi/index.html")
def card_missing(case: Case) -> Note | None:
    """A deployment's cards are named by the numbers that nvidia-smi gives them, from 0."""
    have = {card.index for card in case.host.cards}
    missing = [index for index in case.indices if index not in have]
    if not missing or not have:
        return None
    return note(
        f"card {', '.join(map(str, missing[:8]))} is not there; the host has "
        f"{', '.join(map(str, sorted(have)))}",
        f"gpus: {sorted(have)[: max(1, len(case.indices))]}",
        at="gpus",
    )


@gate("card-named-twice", source="https://docs.vllm.ai/en/latest/serving/parallelism_scaling.html")
def named_twice(case: Case) -> Note | None:
    """Each rank has a card of its own; a card that is named twice is one card."""
    indices = case.deployment.gpus or ()
    if len(set(indices)) == len(indices):
        return None
    return note(
        f"gpus names a card twice: {list(indices)[:16]}", f"gpus: {sorted(set(indices))[:16]}", at="gpus"
    )


@gate("no-card-left", source="boxwright/planner/cards.py")
def no_card_left(case: Case) -> Note | None:
    """A deployment that names no cards gets those that the others leave."""
    if case.indices or not case.host.cards:
        return None
    return note(
        f"no card is left for {shown(case.deployment.name)}: the other deployments have them all",
        "gpus: […] for each deployment, so that they share",
        "fewer deployments",
        at="gpus",
    )


@host_gate("card-overbooked", source="https://github.com/vllm-project/vllm/issues/20305")
def overbooked(host: Host, cases: Sequence[Case]) -> Iterator[Note]:
    """Deployments on one card need shares of it that add up to no more than the whole.

    An engine that starts second finds less memory free than its share, and ends.
    """
    for card in host.cards:
        users = [case for case in cases if card.index in case.indices]
        usable = card.usable_bytes
        if len(users) < 2 or usable is None:
            continue
        asked = sum(_bytes(case, usable) for case in users)
        if asked > usable:
            names = listed(shown(case.deployment.name) for case in users)
            yield note(
                f"{names} share card {card.index} and ask for {asked / usable:.0%} of it",
                *_shares(users, usable),
                "another card for one of them",
                at="gpu_memory_utilization",
                place=users[-1].place,
            )


def _shares(users: Sequence[Case], usable: int) -> list[str]:
    """Shares of a card that let each deployment start, equal ones where they do; none where none do."""
    equal = SHARED / len(users)
    ledgers = [case.ledger for case in users]
    needs = [(one.weights + one.overhead.high) / usable if one else 0.0 for one in ledgers]
    if max(needs) < equal:
        return [f"gpu_memory_utilization: {equal:.2f} for each"]
    spare = (SHARED - sum(needs)) / len(users)
    if spare <= 0:
        return []
    return [
        "gpu_memory_utilization: "
        + listed(
            f"{math.floor(100 * (need + spare)) / 100:.2f} for {shown(case.deployment.name)}"
            for case, need in zip(users, needs, strict=True)
        )
    ]


def _bytes(case: Case, usable: int) -> float:
    if case.settings.pool_bytes is not None:
        ledger = case.ledger
        return case.settings.pool_bytes + (ledger.weights + ledger.overhead.low if ledger else 0)
    return (case.settings.utilization or 0) * usable


@advice("multi-instance-cards", source="https://docs.nvidia.com/datacenter/tesla/mig-user-guide/")
def multi_instance(case: Case) -> Note | None:
    """A card that is split into instances (MIG) shows the memory of the whole, and programs get a part."""
    split = [card.index for card in case.cards if card.card.mig]
    if not split:
        return None
    return note(
        f"card {split[0]} is split into instances (MIG): the plan counts with the whole card",
        "switch MIG off: nvidia-smi -mig 0",
        at="gpus",
    )
