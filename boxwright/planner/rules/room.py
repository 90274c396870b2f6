"""What gives a sequence more room in the KV cache: each way is named only where it is enough."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from boxwright.planner.case import Case
from boxwright.planner.kv_pool import KV_BYTES
from boxwright.planner.memory import Ledger, pool_layout

#: Share of a card beyond which the peak that profiling does not see has no room.
SAFE_SHARE = 0.95
SAFE_SHARE_HYBRID = 0.92


def ways(case: Case, ledger: Ledger, context: int) -> Iterator[str]:
    """The ways by which a sequence of the whole context fits that does not."""
    pool, settings, architecture = ledger.layout, case.settings, case.architecture
    if pool is None or architecture is None:
        return
    if settings.kv_format in ("auto", "bf16", "fp16"):
        smaller = replace(settings, kv_bytes=KV_BYTES["fp8"])
        drafter = case.drafter.attention if case.drafter else None
        halved, _ = pool_layout(architecture, smaller, drafter, case.cards, case.cuda)
        if halved and halved.fits(ledger.pool.high, context):
            yield "kv_cache: fp8 (half the bytes)"
    share = SAFE_SHARE_HYBRID if architecture.is_hybrid else SAFE_SHARE
    if settings.utilization and settings.utilization < share:
        larger = int(ledger.budget / settings.utilization * (share - settings.utilization))
        if pool.fits(ledger.pool.high + larger, context):
            yield f"gpu_memory_utilization: {share:g}"
    tower = case.model.vision_bytes // settings.tensor_parallel
    if settings.vision and not ledger.pinned and tower and pool.fits(ledger.pool.high + tower, context):
        yield "extra_args: {language-model-only: true} (for text alone)"
