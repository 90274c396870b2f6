"""The memory and the speed of a deployment as the plan's JSON says them. Its keys are stable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

from boxwright.catalog.purpose import TEXT
from boxwright.planner.case import Case
from boxwright.planner.memory import LENGTHS, Ledger, wanted
from boxwright.planner.speed import Speed, estimate


def memory(case: Case) -> dict[str, Any] | None:
    """The ledger of the card that ends first, and of every card; None while no card's memory is known.

    The kv_* figures are None where the model's cache is not known.
    """
    ledger = case.ledger
    if ledger is None:
        return None
    return {
        "card_bytes": ledger.card_bytes,
        "budget_bytes": ledger.budget,
        "lines": _lines(ledger),
        "weights_bytes_per_gpu": ledger.weights,
        "overhead_bytes_per_gpu": asdict(ledger.overhead),
        "kv_pool_bytes_per_gpu": _span(ledger, ledger.pool.low, ledger.pool.high),
        **_cache(case, ledger),
        "cards": [_card(case, one) for one in case.ledgers],
    }


def _lines(ledger: Ledger) -> list[dict[str, Any]]:
    return [{"name": line.name, "bytes": line.size, "why": line.why} for line in ledger.lines]


def _card(case: Case, ledger: Ledger) -> dict[str, Any]:
    """One card. stage: the pipeline stage that it serves, from 0; layers: of the model on it."""
    return {
        "index": ledger.card.index,
        "title": ledger.card.title,
        "stage": ledger.stage,
        "stages": case.settings.pipeline_parallel,
        "layers": ledger.layers,
        "card_bytes": ledger.card_bytes,
        "wanted_bytes": _wanted(case, ledger),
        "weights_bytes": ledger.weights,
        "kv_pool_bytes": _span(ledger, ledger.pool.low, ledger.pool.high),
        "lines": _lines(ledger),
    }


def _wanted(case: Case, ledger: Ledger) -> int | None:
    """Bytes that must be free on the card when the engine starts; None where its memory is not known."""
    usable = ledger.card.usable_bytes
    return None if usable is None else round(wanted(case.settings, ledger, usable))


def _cache(case: Case, ledger: Ledger) -> dict[str, Any]:
    architecture, pool = case.architecture, ledger.layout
    if pool is None or architecture is None:
        unknown = (
            "kv_block_tokens",
            "kv_block_bytes",
            "kv_blocks",
            "kv_tokens",
            "blocks_per_request",
            "max_concurrency",
            "resident_sequences",
            "largest_context",
            "state_bytes_per_sequence",
        )
        return dict.fromkeys(unknown)
    context = case.context or architecture.context
    lengths = sorted({length for length in LENGTHS if length < context} | {context})

    def span(figure: Callable[[int], float]) -> Any:
        return _span(ledger, figure(ledger.pool.low), figure(ledger.pool.high))

    return {
        "kv_block_tokens": pool.block_tokens,
        "kv_block_bytes": pool.block_bytes,
        "kv_blocks": span(pool.count),
        "kv_tokens": span(lambda size: pool.tokens(size, context)),
        "blocks_per_request": pool.blocks(context),
        "max_concurrency": span(lambda size: round(pool.concurrency(size, context), 2)),
        "resident_sequences": {
            str(length): span(partial(pool.resident, tokens=length)) for length in lengths
        },
        "largest_context": span(lambda size: pool.longest(size, architecture.context)),
        "state_bytes_per_sequence": pool.state_bytes,
    }


def _span(ledger: Ledger, low: float, high: float) -> Any:
    """One number where the pool is pinned, else a range."""
    return low if ledger.pinned else {"low": low, "high": high}


def speed_of(case: Case) -> Speed | None:
    """The speed of a deployment, None while its geometry, weights or cards are unknown.

    None also where it writes no text: how fast small models read whole texts is measured by nobody here.
    """
    size, architecture = case.weight_bytes, case.architecture
    if size is None or architecture is None or case.settings.serves != TEXT:
        return None
    drafter = case.drafter.bytes if case.drafter else 0
    return estimate(case.model, architecture, case.settings, case.cards, size, drafter, case.context)


def speed(case: Case) -> dict[str, Any] | None:
    """Ranges of tokens a second for one sequence."""
    found = speed_of(case)
    if found is None:
        return None
    return {
        "decode_tokens_per_s": _rounded(found.decode.low, found.decode.high),
        "prefill_tokens_per_s": _rounded(found.prefill.low, found.prefill.high) if found.prefill else None,
        "decode_ceiling_tokens_per_s": round(found.ceiling, 1),
        "decode_by_context": [
            {"context_tokens": tokens, "tokens_per_s": _rounded(one.low, one.high)}
            for tokens, one in found.contexts
        ],
    }


def _rounded(low: float, high: float) -> dict[str, float]:
    return {"low": round(low, 1), "high": round(high, 1)}
