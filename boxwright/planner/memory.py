"""The memory ledger of each card: lines that add up, the KV pool among them, as ranges where only a boot can
tell.

Budget: vllm v1/worker/gpu_worker.py (requested = total x utilization, less weights, activations and graphs).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from boxwright.catalog.architecture import Architecture, Attention
from boxwright.engines.settings import Settings, newer
from boxwright.facts.model import MIB
from boxwright.planner import kv_groups
from boxwright.planner.cards import PlannedCard
from boxwright.planner.kv_groups import UnknownCache
from boxwright.planner.kv_pool import PREFILL_CHECKPOINTS_SINCE, Pool, PoolSpec, layout
from boxwright.planner.model_source import ModelSource
from boxwright.planner.overhead import GIB, Span, overhead
from boxwright.planner.settings import BATCHED_TOKENS

#: Lengths for which the plan says how many sequences stay resident, in tokens.
LENGTHS = (1024, 8192, 32768)


@dataclass(frozen=True)
class Line:
    """One use of a card's memory. size: bytes on one card. why: where the number comes from."""

    name: str
    size: int
    why: str


@dataclass(frozen=True)
class Ledger:
    """A card's memory. lines add up to card_bytes. pool: bytes of the KV pool, one number when it was pinned.

    stage: the pipeline stage that it serves, from 0. layers: of the model on it. weights: bytes on the card
    with drafter and vision tower. budget: bytes that the engine may fill. layout: of the pool on this card,
    None where the model's cache is not known. short: bytes that are missing when even the sure part of the
    uses does not fit, else 0.
    """

    card: PlannedCard
    stage: int
    layers: int
    card_bytes: int
    lines: tuple[Line, ...]
    weights: int
    overhead: Span
    budget: int
    pool: Span
    pinned: bool
    layout: Pool | None
    short: int


def wanted(settings: Settings, ledger: Ledger | None, usable: int) -> float:
    """Bytes of a card's usable memory that must be free for the engine to start on it."""
    if settings.pool_bytes is None:
        return usable * (settings.utilization or 0)
    return settings.pool_bytes + (ledger.weights + ledger.overhead.low if ledger else 0)


def pool_layout(
    architecture: Architecture,
    settings: Settings,
    drafter: Attention | None,
    cards: Sequence[PlannedCard],
    cuda: str | None,
) -> tuple[Pool | None, str | None]:
    """The KV pool's layout for these settings; or None, and what of the cache is not known."""
    if settings.uncounted:
        return None, f"what {settings.uncounted} does to the cache"
    generations = {card.capability[0] for card in cards if card.capability}
    spec = PoolSpec(
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
        checkpoints=_checkpoints(settings, generations, cuda),
        asynchronous=settings.asynchronous,
        release=settings.release,
        generation=min(generations, default=None),
        state_bytes=settings.state_bytes,
        windows=settings.windows,
    )
    try:
        return layout(spec), None
    except UnknownCache as unknown:
        return None, str(unknown)


def _checkpoints(settings: Settings, generations: set[int], cuda: str | None) -> bool:
    """Whether FlashInfer's prefill kernel for linear attention is in use: SM90, or SM100/120 with CUDA 13."""
    if not newer(settings.release, PREFILL_CHECKPOINTS_SINCE):
        return False
    recent = bool(generations) and generations <= {10, 12}
    return generations == {9} or (recent and (cuda or "13").startswith("13"))


def enough_for_blocks(settings: Settings, pool: Pool | None) -> Settings:
    """The settings with a step that holds a whole block, which cached states of hybrids need.

    For settings whose tokens a step nobody declared.
    """
    if pool and pool.state_blocks and settings.prefix_caching:
        whole = -(-pool.block_tokens // 1024) * 1024
        return replace(settings, batched_tokens=max(BATCHED_TOKENS, whole))
    return settings


def ledgers(
    model: ModelSource,
    architecture: Architecture,
    settings: Settings,
    pool: Pool | None,
    cards: Sequence[PlannedCard],
    weight_bytes: int,
    drafter_bytes: int,
) -> tuple[Ledger, ...]:
    """The ledger of each card whose memory is known: tensor ranks of a stage are neighbours."""
    ends = kv_groups.stages(architecture.layers, 0, settings.pipeline_parallel)
    shares = tuple(_shares(model, architecture, settings, weight_bytes, drafter_bytes, ends))
    layers = [end - begin for begin, end in zip((0, *ends), ends, strict=False)]
    extra = overhead(architecture, settings, settings.vision and model.vision_bytes > 0)
    found = []
    for rank, card in enumerate(cards):
        stage = min(rank // settings.tensor_parallel, len(ends) - 1)
        own = replace(pool, stage_bytes=(pool.stage_bytes[stage],)) if pool else None
        ledger = _ledger(model, settings, own, card, stage, layers[stage], shares[stage], extra)
        if ledger:
            found.append(ledger)
    return tuple(found)


def limiting(found: Sequence[Ledger]) -> Ledger | None:
    """The ledger whose card ends first: the engine gives every card as many blocks as that one has."""
    return min(found, key=_blocks, default=None)


def _blocks(ledger: Ledger) -> tuple[int, int]:
    """Blocks that a card surely and at most gets; bytes where their size is not known."""
    low, high = ledger.pool.low, ledger.pool.high
    return (ledger.layout.count(low), ledger.layout.count(high)) if ledger.layout else (low, high)


@dataclass(frozen=True)
class Share:
    """Bytes of the weights on one card of a stage."""

    body: int
    draft: int
    vision: int

    @property
    def all(self) -> int:
        """Their sum."""
        return self.body + self.draft + self.vision


def _shares(
    model: ModelSource,
    architecture: Architecture,
    settings: Settings,
    weight_bytes: int,
    drafter_bytes: int,
    ends: Sequence[int],
) -> Iterator[Share]:
    """Layers by their number; embeddings and vision on the first stage, head and drafter on the last."""
    tp, last = settings.tensor_parallel, len(ends) - 1
    matrix = 2 * architecture.embedding_parameters
    body = max(0, weight_bytes - model.vision_bytes - model.mtp_bytes)
    vocabulary = min(body, matrix * architecture.vocabulary_matrices)
    vision = model.vision_bytes if settings.vision else 0
    draft = drafter_bytes
    if settings.draft_method == "mtp":
        draft = model.mtp_bytes + (matrix if last else 0)  # a last stage has no embeddings but the drafter's
    begin = 0
    for stage, end in enumerate(ends):
        own = (body - vocabulary) * (end - begin) // ends[-1]
        if last == 0:
            own = body
        elif stage in (0, last):
            own += min(matrix, vocabulary)
        yield Share(own // tp, draft // tp if stage == last else 0, vision // tp if stage == 0 else 0)
        begin = end


def _ledger(
    model: ModelSource,
    settings: Settings,
    pool: Pool | None,
    card: PlannedCard,
    stage: int,
    layers: int,
    share: Share,
    extra: Span,
) -> Ledger | None:
    usable, total = card.usable_bytes, card.total_mib
    if usable is None or total is None:
        return None
    if settings.encoder:
        budget, left = int(usable * (settings.utilization or 1)), Span(0, 0)
        short = max(0, share.all + extra.low - budget)
    elif settings.pool_bytes is not None:
        budget, left = usable, Span(settings.pool_bytes, settings.pool_bytes)
        short = max(0, share.all + extra.low + settings.pool_bytes - usable)
    else:
        budget = int(usable * (settings.utilization or 0))
        left = Span(max(0, budget - share.all - extra.high), max(0, budget - share.all - extra.low))
        short = max(0, share.all + extra.low - budget)
    lines = [Line("driver", total * MIB - usable, "kept by the driver")]
    lines += _lines(model, settings, pool, share, extra, left.middle)
    lines.append(
        Line("left free", total * MIB - sum(line.size for line in lines), "outside the engine's share")
    )
    return Ledger(
        card=card,
        stage=stage,
        layers=layers,
        card_bytes=total * MIB,
        lines=tuple(line for line in lines if line.size),
        weights=share.all,
        overhead=extra,
        budget=budget,
        pool=left,
        pinned=settings.pool_bytes is not None,
        layout=pool,
        short=short,
    )


def _lines(
    model: ModelSource, settings: Settings, pool: Pool | None, share: Share, extra: Span, pool_bytes: int
) -> list[Line]:
    """What the engine fills. The pool is drawn at its middle where it is a range."""
    tp, stages = settings.tensor_parallel, settings.pipeline_parallel
    known = "files" if model.exact else "the catalog's figure"
    part = f", 1/{tp} of them" if tp > 1 else ""
    part += ", this stage's layers" if stages > 1 else ""
    state, why = 0, "how much a token takes is not known"
    if model.wide:
        part += ", their 32-bit numbers kept in 16"
    if pool:
        state = min(pool_bytes, settings.concurrency * pool.state_blocks * pool.block_bytes)
        why = f"blocks of {pool.block_tokens:,} tokens"
    return [
        Line("weights", share.body, f"by {known}{part}"),
        Line(
            "drafter", share.draft, "the draft layer" if settings.draft_method == "mtp" else "the draft model"
        ),
        Line("vision tower", share.vision, "kept at 16 bits"),
        Line(
            "activations and graphs",
            extra.middle,
            f"{extra.low / GIB:.1f} to {extra.high / GIB:.1f} GiB: only a "
            f"boot can tell; {settings.batched_tokens:,} tokens a step",
        ),
        Line(
            "sequence state",
            state,
            f"linear attention: {pool.state_blocks if pool else 0} blocks for each of "
            f"{settings.concurrency} sequences",
        ),
        Line("KV cache", pool_bytes - state, why),
    ]
