"""How fast it may answer: ranges from bandwidth and arithmetic, never a promise.

Decoding one sequence, a step reads the weights and the KV cache at 0.55 to 0.77 of the card's bandwidth (0.69
fits 15 public one-card rows with a mean error of 7 %); launches cost time for each layer, and so do the two
all-reduces of each layer on several cards (rows of alesha-pro/qwen38-27b-bench-4x3090). With drafts, each
draft pass reads its own bytes, and verifying costs 2 to 6 ms a step on one card, 7 to 21 ms on several
(noonghunna/club-3090, syv-ai/qwen38-27b-rtx3090). Prefill: 0.35 to 0.75 of the dense 16-bit peak.
tests/unit/planner/test_speed.py holds the measured rows against the ranges.
"""

from __future__ import annotations

from dataclasses import dataclass

from boxwright.catalog.architecture import Architecture
from boxwright.engines.settings import Settings
from boxwright.planner.cards import PlannedCard
from boxwright.planner.model_source import ModelSource

#: Share of the bandwidth that decoding reaches: slow, fast.
REACHED = (0.55, 0.77)
#: Seconds a layer and step: launching its kernels.
LAUNCH_S = (20e-6, 2e-6)
#: Seconds for one of a layer's two all-reduces, for each two cards that take part.
REDUCE_S = (25e-6, 0.0)
#: Seconds that verifying drafts adds to a step, on one card and on several.
VERIFY_S = ((0.006, 0.002), (0.021, 0.007))
#: Share of drafts that are accepted, of hard text and of easy text.
ACCEPTED = (0.55, 0.93)
#: Share of the arithmetic peak that reading a prompt reaches.
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


@dataclass(frozen=True)
class Step:
    """What one decoding step does. bytes: read by each card. draft_bytes: of one draft pass, on each card."""

    bytes: float
    bandwidth: float
    layers: int
    cards: int
    draft_tokens: int = 0
    draft_passes: int = 0
    draft_bytes: float = 0

    def tokens_per_second(self) -> Range:
        """From slow kernels on hard text to fast kernels on easy text."""
        slow, fast = (self._rate(way) for way in (0, 1))
        return Range(slow, fast)

    def _rate(self, way: int) -> float:
        read = self.bytes + self.draft_passes * self.draft_bytes
        seconds = read / (REACHED[way] * self.bandwidth) + self.layers * LAUNCH_S[way]
        if self.cards > 1:
            seconds += self.layers * self.cards * REDUCE_S[way]
        if self.draft_tokens:
            seconds += VERIFY_S[min(1, self.cards - 1)][way]
        tokens = sum(ACCEPTED[way] ** n for n in range(self.draft_tokens + 1))
        return tokens / seconds


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
    tp, attention = settings.tensor_parallel, architecture.attention
    bandwidth = min(kind.bandwidth_gbs for kind in kinds) * 1e9
    token = float(2 * attention.layers * attention.kv_heads * attention.head_dim * settings.kv_bytes)
    read = (_streamed(model, architecture, weight_bytes) + token * SHORT_CONTEXT) / tp
    drafts = settings.draft_tokens if settings.draft_method != "none" else 0
    head = 2 * architecture.embedding_parameters
    draft = {"mtp": model.mtp_bytes + head, "dflash2": drafter_bytes}.get(settings.draft_method, 0)
    passes = min(drafts, 1) if settings.draft_method == "dflash2" else drafts
    step = Step(read, bandwidth, architecture.layers, len(kinds), drafts, passes, draft / tp)
    peaks = [kind.tflops for kind in kinds if kind.tflops]
    prefill = None
    if len(peaks) == len(kinds):
        rate = min(peaks) * 1e12 / (2.0 * architecture.active_parameters)
        # The all-reduces of a long prompt cap what more cards bring; at worst they bring nothing.
        prefill = Range(PREFILL[0] * rate, PREFILL[1] * rate * tp)
    return Speed(step.tokens_per_second(), prefill, bandwidth / read)


def _streamed(model: ModelSource, architecture: Architecture, weight_bytes: int) -> float:
    """Bytes that one step reads of the weights: all but embeddings, vision, drafts and idle experts."""
    if model.entry and model.entry.weights.streamed and weight_bytes == model.weight_bytes:
        return float(model.entry.weights.streamed)
    head = 2 * architecture.embedding_parameters
    body = max(
        0, weight_bytes - model.vision_bytes - model.mtp_bytes - head * (1 if architecture.tied else 2)
    )
    return head + body * architecture.active_parameters / max(1, architecture.body_parameters)
