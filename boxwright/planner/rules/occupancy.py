"""Rules about memory of the cards that other programs hold."""

from __future__ import annotations

from boxwright.facts.model import MIB
from boxwright.planner import memory
from boxwright.planner.cards import PlannedCard
from boxwright.planner.case import Case
from boxwright.planner.rules.registry import Note, advice, gate, note
from boxwright.planner.rules.words import gib


@advice("card-in-use", source="https://github.com/vllm-project/vllm/issues/20305")
def card_in_use(case: Case) -> Note | None:
    """Memory that other programs hold is missing where they take more of it later."""
    busy = [card for card in case.cards if (card.card.memory_used_mib or 0) > 512]
    if not busy or _ours_runs(case) or _lacking(case, busy[0]) > 0:
        return None
    return note(
        f"card {busy[0].index} has {busy[0].card.memory_used_mib:,} MiB in use already",
        "end what uses it (nvidia-smi names it)",
        "a smaller gpu_memory_utilization",
        at="gpus",
    )


@gate("card-too-full", source="https://github.com/vllm-project/vllm/issues/20305")
def card_too_full(case: Case) -> Note | None:
    """The engine ends at its start when less memory is free than its share: "Free memory on device … is less
    than desired GPU memory utilization".

    A desktop session is enough. What Boxwright's own engine holds is free once that is stopped, and not
    counted.
    """
    card = max(case.cards, key=lambda card: _lacking(case, card), default=None)
    if card is None or _ours_runs(case) or _lacking(case, card) <= 0:
        return None
    used, usable = card.card.memory_used_mib or 0, card.usable_bytes or 1
    share = max(0.0, (usable - used * MIB) / usable - 0.01)
    return note(
        f"card {card.index} has {used:,} MiB in use already; the engine's share leaves "
        f"{gib(usable - memory.wanted(case.settings, case.ledger, usable))} for others",
        "end what uses it (nvidia-smi names it)",
        *(
            [f"gpu_memory_utilization: {share:.2f}"]
            if share >= 0.1 and case.settings.pool_bytes is None
            else []
        ),
        at="gpus",
    )


def _ours_runs(case: Case) -> bool:
    """Whether an engine of Boxwright's is on the host: what it holds is free once it is stopped."""
    facts = case.host.facts
    return any(release.current for release in facts.releases) or any(
        (listener.container or "").startswith("boxwright-") for listener in facts.listening
    )


def _lacking(case: Case, card: PlannedCard) -> float:
    """Bytes by which a card's free memory is less than the engine wants, 0 or less where it is enough."""
    used, usable = card.card.memory_used_mib, card.usable_bytes
    if not used or usable is None or not case.host.facts.recorded:
        return 0
    return memory.wanted(case.settings, case.ledger, usable) - (usable - used * MIB)
