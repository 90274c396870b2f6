"""The memory ledger of one card: lines that add up, the KV pool among them, as ranges where only a boot can
tell.

Budget: vllm v1/worker/gpu_worker.py (requested = total x utilization, less weights, activations and graphs).
The allowances are taken so that published boots lie inside: two RTX 4090 with 4,096 tokens a step 2.1 GiB,
two RTX 3090 with 8,192 1.7 to 2.1 GiB; profiling misses up to 2.9 GiB on an RTX 5090
(vllm-project/vllm#44209).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from boxwright.catalog.architecture import Architecture, Attention
from boxwright.engines.settings import Settings, newer
from boxwright.facts.model import MIB
from boxwright.planner.cards import PlannedCard
from boxwright.planner.kv_pool import PREFILL_CHECKPOINTS_SINCE, Pool, PoolSpec, layout
from boxwright.planner.model_source import ModelSource
from boxwright.planner.settings import BATCHED_TOKENS

GIB = 1 << 30
#: Lengths for which the plan says how many sequences stay resident, in tokens.
LENGTHS = (1024, 8192, 32768)


@dataclass(frozen=True)
class Span:
    """A range of bytes: what can be sure of, and the most that may be."""

    low: int
    high: int

    @property
    def middle(self) -> int:
        """What to expect."""
        return (self.low + self.high) // 2

    def __add__(self, other: Span) -> Span:
        return Span(self.low + other.low, self.high + other.high)


@dataclass(frozen=True)
class Line:
    """One use of a card's memory. size: bytes on one card. why: where the number comes from."""

    name: str
    size: int
    why: str


@dataclass(frozen=True)
class Ledger:
    """A card's memory. lines add up to card_bytes. pool: bytes of the KV pool, one number when it was pinned.

    weights: bytes on the card with drafter and vision tower. budget: bytes that the engine may fill. short:
    bytes that are missing when even the sure part of the uses does not fit, else 0.
    """

    card_bytes: int
    lines: tuple[Line, ...]
    weights: int
    overhead: Span
    budget: int
    pool: Span
    pinned: bool
    layout: Pool
    short: int


def pool_layout(
    architecture: Architecture,
    settings: Settings,
    drafter: Attention | None,
    cards: tuple[PlannedCard, ...],
    cuda: str | None,
) -> Pool:
    """The KV pool's layout for these settings."""
    return layout(
        PoolSpec(
            architecture=architecture,
            kv_bytes=settings.kv_bytes,
            tensor_parallel=settings.tensor_parallel,
            pipeline_parallel=settings.pipeline_parallel,
            draft_tokens=settings.draft_tokens,
            mtp_layers=architecture.mtp_layers if settings.draft_method == "mtp" else 0,
            drafter=drafter,
            prefix_caching=settings.prefix_caching,
            batched_tokens=settings.batched_tokens,
            block_size=settings.block_size,
            checkpoints=_checkpoints(settings, cards, cuda),
        )
    )


def _checkpoints(settings: Settings, cards: tuple[PlannedCard, ...], cuda: str | None) -> bool:
    """Whether FlashInfer's prefill kernel for linear attention is in use: SM90, or SM100/120 with CUDA 13."""
    if not newer(settings.release, PREFILL_CHECKPOINTS_SINCE):
        return False
    majors = {card.capability[0] for card in cards if card.capability}
    return majors == {9} or (bool(majors) and majors <= {10, 12} and (cuda or "13").startswith("13"))


def enough_for_blocks(settings: Settings, pool: Pool) -> Settings:
    """The settings with a step that holds a whole block, which cached states of hybrids need."""
    if pool.state_blocks and settings.prefix_caching and settings.batched_tokens == BATCHED_TOKENS:
        whole = -(-pool.block_tokens // 1024) * 1024
        return replace(settings, batched_tokens=max(BATCHED_TOKENS, whole))
    return settings


def overhead(architecture: Architecture, settings: Settings, vision: bool) -> Span:
    """What the engine needs beside weights and KV: activations of one step, workspaces, graphs,
    communication.
    """
    tp, tokens = settings.tensor_parallel, settings.batched_tokens
    width = 3 * (architecture.hidden + _widest(architecture) // tp)
    activations = tokens * width * 2
    sampler = settings.concurrency * (1 + settings.draft_tokens) * architecture.vocab * 8
    linear = architecture.linear
    # Chunked scan: per head and token about ten 16-bit vectors and a share of the chunk's state.
    scan = tokens * linear.value_heads // tp * linear.value_head_dim * 20 if linear else 0
    span = Span(activations + scan // 2 + sampler, activations * 8 // 5 + scan * 13 // 10 + sampler * 2)
    span += Span(GIB // 8, GIB)  # workspaces of the kernels, fragmentation, peaks that profiling misses
    if vision:
        span += Span(0, GIB // 2)  # the largest picture's pass through the vision tower
    if tp * settings.pipeline_parallel > 1:
        span += Span(GIB // 5, GIB // 2)  # NCCL buffers
    if not settings.eager:
        span += Span(architecture.layers * 2 * MIB, architecture.layers * 10 * MIB)  # CUDA graphs
    return span


def _widest(architecture: Architecture) -> int:
    experts = architecture.experts
    return (
        max(architecture.intermediate, experts.active * experts.intermediate)
        if experts
        else architecture.intermediate
    )


def ledger(
    model: ModelSource,
    architecture: Architecture,
    settings: Settings,
    pool: Pool,
    card: PlannedCard,
    weight_bytes: int,
    drafter_bytes: int,
) -> Ledger | None:
    """The ledger of the deployment's smallest card; None while its memory is unknown."""
    usable, total = card.usable_bytes, card.total_mib
    if usable is None or total is None:
        return None
    ranks = settings.tensor_parallel * settings.pipeline_parallel
    vision = model.vision_bytes if settings.vision else 0
    body = max(0, weight_bytes - model.vision_bytes - model.mtp_bytes) // ranks
    draft = (model.mtp_bytes if settings.draft_method == "mtp" else drafter_bytes) // settings.tensor_parallel
    weights = body + draft + vision // settings.tensor_parallel
    extra = overhead(architecture, settings, vision > 0)
    pinned = settings.pool_bytes is not None
    if settings.pool_bytes is not None:
        budget, left = usable, Span(settings.pool_bytes, settings.pool_bytes)
        short = max(0, weights + extra.low + settings.pool_bytes - usable)
    else:
        budget = int(usable * (settings.utilization or 0))
        left = Span(max(0, budget - weights - extra.high), max(0, budget - weights - extra.low))
        short = max(0, weights + extra.low - budget)
    lines = _lines(
        total * MIB,
        usable,
        body,
        draft,
        vision // settings.tensor_parallel,
        extra,
        left.middle,
        settings,
        pool,
        model,
    )
    return Ledger(total * MIB, lines, weights, extra, budget, left, pinned, pool, short)


def _lines(
    total: int,
    usable: int,
    body: int,
    draft: int,
    vision: int,
    extra: Span,
    pool_bytes: int,
    settings: Settings,
    pool: Pool,
    model: ModelSource,
) -> tuple[Line, ...]:
    ranks = settings.tensor_parallel * settings.pipeline_parallel
    share = f", 1/{ranks} of them" if ranks > 1 else ""
    state = min(pool_bytes, settings.concurrency * pool.state_blocks * pool.block_bytes)
    known = "files" if model.exact else "the catalog's figure"
    lines = [
        Line("driver", total - usable, "kept by the driver"),
        Line("weights", body, f"by {known}{share}"),
        Line("drafter", draft, "the draft layer" if settings.draft_method == "mtp" else "the draft model"),
        Line("vision tower", vision, "kept at 16 bits"),
        Line(
            "activations and graphs",
            extra.middle,
            f"{extra.low / GIB:.1f} to {extra.high / GIB:.1f} GiB: only a "
            f"boot can tell; {settings.batched_tokens:,} tokens a step",
        ),
        Line(
            "sequence state",
            state,
            f"linear attention: {pool.state_blocks} blocks for each of {settings.concurrency} sequences",
        ),
        Line("KV cache", pool_bytes - state, f"blocks of {pool.block_tokens} tokens"),
    ]
    lines.append(Line("left free", total - sum(line.size for line in lines), "outside the engine's share"))
    return tuple(line for line in lines if line.size)
