"""Rules about the cards' memory: weights, KV cache, the state of hybrid models."""

from __future__ import annotations

from boxwright.engines.settings import newer
from boxwright.planner.case import Case
from boxwright.planner.rules.registry import Note, advice, gate, note
from boxwright.planner.rules.room import SAFE_SHARE, SAFE_SHARE_HYBRID
from boxwright.planner.rules.room import ways as more_room
from boxwright.planner.rules.words import gib, gib_apart
from boxwright.planner.settings import UTILIZATION
from boxwright.planner.sharing import divides

ACCOUNTING = "https://github.com/vllm-project/vllm/blob/v0.29.0/vllm/v1/worker/gpu_worker.py"
STEP = "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/config/vllm.py"
#: The first release that goes through a block of a hybrid in several steps.
SHORT_STEPS_SINCE = "0.27.0"


def _smaller_forms(case: Case) -> list[str]:
    """Forms of the same model in the catalog that are smaller and leave room to work, smallest first."""
    entry, size, ledger = case.model.entry, case.weight_bytes, case.ledger
    if entry is None or not size or ledger is None:
        return []
    room = (ledger.budget - ledger.overhead.low) * size / max(1, ledger.weights)
    alike = [
        one
        for one in case.host.catalog.models.values()
        if one.architecture == entry.architecture
        and one.id != entry.id
        and one.weights.bits < entry.weights.bits
        and (one.weights.bytes or one.weights.about or 0) < room
    ]
    return [
        f"model: {one.id}" for one in sorted(alike, key=lambda one: (one.weights.bits, one.unconfirmed))[:2]
    ]


@gate("weights-do-not-fit", source=ACCOUNTING)
def weights_do_not_fit(case: Case) -> Note | None:
    """Weights, and what a step of the engine needs beside them, must lie in a card's memory, or there is no
    cache.

    The official 8-bit Qwen3.8-27B has 28.75 GiB: one RTX 5090 has 31.4 GiB to use, and no room is left.
    """
    ledger = case.ledger
    if ledger is None or (not ledger.short and (ledger.pool.high > 0 or case.settings.encoder)):
        return None
    needs = ledger.weights + ledger.overhead.low
    cards = f"each of {len(case.cards)} cards" if len(case.cards) > 1 else f"one {case.cards[0].title}"
    if ledger.pinned and needs <= ledger.budget:
        least = (ledger.budget - ledger.weights - ledger.overhead.high) // 1024**2 * 1024**2
        return note(
            f"{gib(ledger.pool.high)} of KV cache beside {gib(needs)} for weights and work are more than the "
            f"{gib(ledger.budget)} of {cards}",
            *(
                [f"kv_cache_memory_bytes: {least} or less"]
                if least > 0
                else ["a smaller kv_cache_memory_bytes"]
            ),
            at="kv_cache_memory_bytes",
        )
    ways, share = _smaller_forms(case), case.settings.utilization or 1
    if share < UTILIZATION and needs < ledger.budget / share * UTILIZATION:
        ways.insert(0, f"gpu_memory_utilization: {UTILIZATION:g}")
    cards_of_host = range(len(case.host.cards), len(case.cards), -1)
    shared = next((n for n in cards_of_host if case.architecture and divides(case.architecture, n)), None)
    if shared:
        ways.append(f"tensor_parallel: {shared}" + (" with more gpus" if case.deployment.gpus else ""))
    return note(
        f"{case.model.name} needs {gib(ledger.weights)} for weights and at least {gib(ledger.overhead.low)} "
        f"to "
        f"work on {cards}; the engine may fill {gib(ledger.budget)}",
        *(ways or ["a smaller model, or more cards"]),
        at="model",
        # What another engine needs beside the weights is not known; that they must lie in the card is.
        soft=not case.engine.exact_pool and ledger.weights < ledger.card_bytes,
    )


@gate(
    "kv-cache-too-small",
    source="https://github.com/vllm-project/vllm/blob/v0.29.0/vllm/v1/core/kv_cache_utils.py",
    engine="vllm",
)
def kv_cache_too_small(case: Case) -> Note | None:
    """The engine starts only if one sequence of the whole context fits into the KV cache.

    By vLLM's own integer arithmetic; one block is never given out.
    """
    ledger, context = case.ledger, case.context
    if ledger is None or context is None or ledger.short or ledger.pool.high <= 0:
        return None
    pool = ledger.layout
    if pool is None or pool.fits(ledger.pool.high, context):
        return None
    longest = pool.longest(ledger.pool.high, context)
    needs = pool.blocks(context) * pool.block_bytes
    ways = [f"context: {longest // 1024 * 1024}" if longest >= 1024 else "a smaller model, or more cards"]
    ways += more_room(case, ledger, context)
    if ledger.pinned:
        ways.append(f"kv_cache_memory_bytes: {needs + pool.block_bytes} or more")
    wanted, most = gib_apart(needs, ledger.pool.high)
    has = f"{'has' if ledger.pinned else 'gets at most'} {most}"
    return note(
        f"one sequence of {context:,} tokens needs {wanted} of KV cache a card; it {has}",
        *ways,
        at="context",
    )


@gate("step-smaller-than-block", source=STEP, engine="vllm")
def step_smaller_than_block(case: Case) -> Note | None:
    """A hybrid's state is cached at the ends of blocks; until vLLM 0.26 a step had to be as long as a block.

    The engine ended with "In Mamba cache align mode, block_size (1600) must be <= max_num_batched_tokens".
    Later releases go through a block in several steps.
    """
    pool, settings = case.pool, case.settings
    if (
        pool is None
        or not pool.state_blocks
        or not settings.prefix_caching
        or newer(settings.release, SHORT_STEPS_SINCE)
        or settings.batched_tokens >= pool.block_tokens
    ):
        return None
    enough = -(-pool.block_tokens // 1024) * 1024
    return note(
        f"a step of {settings.batched_tokens:,} tokens does not reach the end of a block of "
        f"{pool.block_tokens:,}, where vLLM {settings.release} keeps the state of a cached prefix",
        f"max_batched_tokens: {enough}",
        "prefix_caching: false",
        at="max_batched_tokens",
    )


@advice("kv-cache-may-be-too-small", source=ACCOUNTING, engine="vllm")
def kv_cache_may_be_too_small(case: Case) -> Note | None:
    """How much memory a step needs is known only at the first boot; the plan gives a range."""
    ledger, context = case.ledger, case.context
    if ledger is None or ledger.layout is None or context is None or ledger.short:
        return None
    if not ledger.layout.fits(ledger.pool.high, context) or ledger.layout.fits(ledger.pool.low, context):
        return None
    sure = ledger.layout.longest(ledger.pool.low, context)
    return note(
        f"one sequence of {context:,} tokens fits only if the engine works with less than the most that is "
        f"allowed for; {sure:,} tokens surely fit",
        "context: auto",
        f"context: {sure // 1024 * 1024}",
        at="context",
    )


@advice(
    "cache-size-unknown",
    source="https://github.com/vllm-project/vllm/blob/v0.29.0/vllm/v1/kv_cache_interface.py",
)
def cache_size_unknown(case: Case) -> Note | None:
    """How much of the cache a sequence takes follows from the kinds of the model's layers.

    The plan counts attention over the whole context or a window, latent attention, and Gated DeltaNet's state
    by vLLM's own arithmetic. For other kinds it says nothing rather than a wrong number.
    """
    if case.unknown_cache is None:
        return None
    return note(
        f"the plan cannot say how many tokens fit: it does not know {case.unknown_cache}",
        f"read the boot line `{case.engine.pool_line}` of a first start with a small context",
        at="model",
    )


@gate(
    "more-sequences-than-state-blocks",
    source="https://github.com/vllm-project/recipes/pull/831",
    engine="vllm",
)
def more_sequences_than_blocks(case: Case) -> Note | None:
    """Each running sequence of a hybrid model keeps blocks of state, however short it is.

    vLLM refuses to capture CUDA graphs for more sequences than there are blocks: "max_num_seqs exceeds
    available Mamba cache blocks". Raising gpu_memory_utilization does not help much.
    """
    ledger = case.ledger
    if ledger is None or ledger.layout is None or ledger.short or case.settings.eager:
        return None
    if not ledger.layout.state_blocks:
        return None
    blocks = ledger.layout.count(ledger.pool.high)
    if case.settings.concurrency <= blocks or blocks <= 0:
        return None
    return note(
        f"concurrency {case.settings.concurrency} is more than the {blocks} state blocks that the cache has",
        f"concurrency: {max(1, ledger.layout.resident(ledger.pool.low, 1024))}",
        at="concurrency",
    )


@advice("sequences-will-wait", source=ACCOUNTING, engine="vllm")
def sequences_will_wait(case: Case) -> Note | None:
    """Sequences that do not fit into the cache together wait for each other, or are computed again."""
    ledger = case.ledger
    if ledger is None or ledger.layout is None or ledger.short or ledger.pool.high <= 0:
        return None
    resident = ledger.layout.resident(ledger.pool.high, 1024)
    if case.settings.concurrency <= resident or resident == 0:
        return None
    return note(
        f"only {resident} sequences of 1,024 tokens fit at once; concurrency is {case.settings.concurrency}",
        f"concurrency: {resident}",
        at="concurrency",
    )


@advice(
    "utilization-leaves-no-room",
    source="https://github.com/vllm-project/vllm/issues/44209",
    engine="vllm",
)
def utilization_leaves_no_room(case: Case) -> Note | None:
    """Some work of the engine is not seen by its profiling, with linear attention up to 2.9 GiB.

    It comes with the first long prompt, after the engine said it was ready: out of memory under load.
    """
    share, architecture = case.deployment.gpu_memory_utilization, case.architecture
    if share is None or architecture is None or share > 1:
        return None
    safe = SAFE_SHARE_HYBRID if architecture.is_hybrid else SAFE_SHARE
    if share <= safe:
        return None
    smallest = min((card.usable_bytes for card in case.cards if card.usable_bytes), default=0)
    room = f"{gib((1 - share) * smallest)}" if smallest else "no room"
    return note(
        f"gpu_memory_utilization {share:g} leaves {room} for the peak of the first long prompt, which "
        f"takes up to "
        f"{'2.9 GiB' if architecture.is_hybrid else '1.5 GiB'}",
        "gpu_memory_utilization: 0.9",
        "kv_cache_memory_bytes: … for a size that was seen to work",
        at="gpu_memory_utilization",
    )


@gate("utilization-out-of-range", source=ACCOUNTING)
def utilization_out_of_range(case: Case) -> Note | None:
    """gpu_memory_utilization is a share of the card: more than 0, at most 1."""
    share = case.deployment.gpu_memory_utilization
    if share is None or 0 < share <= 1:
        return None
    return note(
        f"gpu_memory_utilization {share:g} is no share of a card",
        "a number from 0 to 1, as 0.9",
        at="gpu_memory_utilization",
    )


@advice("graphs-may-not-fit", source="https://github.com/vllm-project/recipes/pull/810", engine="vllm")
def graphs_may_not_fit(case: Case) -> Note | None:
    """Where weights fill nearly all of a card, capturing CUDA graphs runs out of memory after everything
    else went well; another share changes nothing.

    Qwen3.8-27B in 4-bit floating point on one RTX 5090 needs enforce-eager in the form of 24.6 GiB.
    """
    ledger = case.ledger
    if ledger is None or case.settings.eager or ledger.short or ledger.pinned:
        return None
    if ledger.pool.low > 0 or ledger.pool.high <= 0:
        return None
    return note(
        f"weights take {gib(ledger.weights)} of {gib(ledger.budget)}: capturing CUDA graphs may run out "
        f"of memory",
        "extra_args: {enforce-eager: true} (decodes more slowly)",
        *_smaller_forms(case),
        at="model",
    )
