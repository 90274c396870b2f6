"""How fast it may answer: ranges from bandwidth and arithmetic, never a promise.

Decode: a step reads the weights and the KV cache at 0.55 to 0.77 of the card's bandwidth (public rows; 0.69
fits 15 one-card rows with a mean error of 7 %), a draft pass its own bytes; a step of drafting costs 3 ms
more on one card, 7 to 21 ms on two. Prefill: 0.35 to 0.75 of the dense 16-bit peak. Sources:
decode_measured.csv rows (ALE, SYV, CLB, SUD, KUT), noonghunna/club-3090, alesha-pro/qwen38-27b-bench-4x3090.
"""

from __future__ import annotations

from dataclasses import dataclass

from boxwright.catalog.architecture import Architecture
from boxwright.engines.settings import Settings
from boxwright.planner.cards import PlannedCard
from boxwright.planner.model_source import ModelSource

#: Share of the bandwidth that decoding reaches; all-reduces of several cards cost more.
REACHED = (0.55, 0.77)
REACHED_TOGETHER = (0.42, 0.72)
#: Seconds that verifying drafts adds to a step.
VERIFY_S = {1: (0.002, 0.006), 2: (0.007, 0.021)}
#: Share of drafts that are accepted, of hard text and of easy text.
ACCEPTED = (0.55, 0.85)
PREFILL = (0.35, 0.75)
#: Tokens of context at which decoding is told.
SHORT_CONTEXT = 2048


@dataclass(frozen=True)
class Range:
    """Tokens a second."""

    low: float
    high: float


@dataclass(frozen=True)
class Speed:
    """Of one sequence. ceiling: decoding at the whole bandwidth, without drafts."""

    decode: Range
    prefill: Range | None
    ceiling: float


def estimate(
    model: ModelSource,
    architecture: Architecture,
    settings: Settings,
    cards: tuple[PlannedCard, ...],
    weight_bytes: int,
    drafter_bytes: int,
) -> Speed | None:
    """The ranges on these cards; None for cards whose bandwidth is unknown."""
    kinds = [card.kind for card in cards if card.kind]
    if not kinds or len(kinds) != len(cards):
        return None
    tp = settings.tensor_parallel
    bandwidth = min(kind.bandwidth_gbs for kind in kinds) * 1e9
    step = _streamed(model, architecture, weight_bytes) / tp
    kv = 2 * architecture.attention.layers * architecture.attention.kv_heads * architecture.attention.head_dim
    step += float(kv * settings.kv_bytes) * SHORT_CONTEXT / tp
    reached = REACHED if len(kinds) == 1 else REACHED_TOGETHER
    low, high = (step / (share * bandwidth) for share in reached)
    tokens = (1.0, 1.0)
    if settings.draft_tokens and settings.draft_method != "none":
        passes = 1 if settings.draft_method == "dflash2" else settings.draft_tokens
        head = 2 * architecture.embedding_parameters
        size = {"mtp": model.mtp_bytes + head, "dflash2": drafter_bytes}.get(settings.draft_method, 0)
        draft = passes * size / tp
        cost = VERIFY_S[min(2, len(kinds))]
        low, high = (
            seconds + draft / (share * bandwidth) + more
            for seconds, share, more in zip((low, high), reached, reversed(cost), strict=True)
        )
        tokens = tuple(
            sum(p**n for n in range(settings.draft_tokens + 1))  # type: ignore[assignment]
            for p in ACCEPTED
        )
    peak = [kind.tflops for kind in kinds]
    work = 2.0 * architecture.active_parameters / 1e12
    prefill = (
        Range(
            PREFILL[0] * min(peak_ for peak_ in peak if peak_) / work,
            PREFILL[1] * tp * min(peak_ for peak_ in peak if peak_) / work,
        )
        if all(peak)
        else None
    )
    return Speed(Range(tokens[0] / low, tokens[1] / high), prefill, bandwidth / step)


def _streamed(model: ModelSource, architecture: Architecture, weight_bytes: int) -> float:
    """Bytes that one step reads of the weights: all but embeddings, vision, drafts and idle experts."""
    if model.entry and model.entry.weights.streamed and weight_bytes == model.weight_bytes:
        return float(model.entry.weights.streamed)
    embeddings = 0 if architecture.tied else 2 * architecture.embedding_parameters
    read = max(0, weight_bytes - model.vision_bytes - model.mtp_bytes - embeddings)
    return read * architecture.active_parameters / max(1, architecture.body_parameters)
