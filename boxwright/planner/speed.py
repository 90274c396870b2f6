"""How fast a deployment may answer one sequence: ranges, never a promise. See decode.py and prefill.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from boxwright.catalog.architecture import Architecture
from boxwright.engines.settings import Settings
from boxwright.planner.cards import PlannedCard
from boxwright.planner.decode import Range, Step
from boxwright.planner.model_source import ModelSource
from boxwright.planner.prefill import prefill

#: Tokens of context at which decoding is told first, and those told beside it.
SHORT_CONTEXT = 2048
CONTEXTS = (8192, 32768, 131072)
#: Generations whose FLASH_ATTN splits a long cache over the card: Hopper's and Blackwell's for data centres.
SPLITTING = frozenset({9, 10})


@dataclass(frozen=True)
class Speed:
    """Of one sequence. decode: at a short context; contexts: tokens of context -> decoding there.

    ceiling: decoding at the whole bandwidth, without drafts.
    """

    decode: Range
    prefill: Range | None
    ceiling: float
    contexts: tuple[tuple[int, Range], ...] = ()

    def at(self, tokens: int) -> Range:
        """Decoding at the longest of the told contexts that is no longer than so many tokens."""
        return next((told for length, told in reversed(self.contexts) if length <= tokens), self.decode)


def estimate(
    model: ModelSource,
    architecture: Architecture,
    settings: Settings,
    cards: Sequence[PlannedCard],
    weight_bytes: int,
    drafter_bytes: int,
    context: int | None = None,
) -> Speed | None:
    """The ranges on these cards; None for cards whose bandwidth is unknown. context: of the deployment."""
    kinds = [card.kind for card in cards if card.kind]
    if not kinds or len(kinds) != len(cards):
        return None
    bandwidth = min(kind.bandwidth_gbs for kind in kinds) * 1e9
    tp = settings.tensor_parallel
    drafts = settings.draft_tokens if settings.draft_method != "none" else 0
    head = 2 * architecture.embedding_parameters
    draft = {"mtp": model.mtp_bytes + head, "dflash2": drafter_bytes}.get(settings.draft_method, 0)
    passes = {"mtp": drafts, "dflash2": min(drafts, 1)}.get(settings.draft_method, 0)
    alone = _walks_alone(architecture, settings, cards)

    def step(tokens: int, checked: int) -> Step:
        return Step(
            weights=_streamed(model, architecture, weight_bytes, 1 + checked) / tp,
            bandwidth=bandwidth,
            layers=architecture.layers,
            ranks=tp,
            cards=len(cards),
            cache=_cache(architecture, settings, tokens),
            attention=architecture.attention.layers,
            unsplit=tokens if alone else 0,
            drafts=checked,
            passes=passes if checked else 0,
            draft_bytes=draft / tp,
        )

    def decoding(tokens: int) -> Range:
        found = step(tokens, drafts).range()
        if settings.draft_method != "ngram" or not drafts:
            return found
        # Drafts copied from the prompt may all miss, and text that repeats it is like easy text.
        return Range(step(tokens, 0).range().low, found.high)

    whole = context or architecture.context
    lengths = [length for length in CONTEXTS if length < whole] + ([whole] if whole > SHORT_CONTEXT else [])
    return Speed(
        decode=decoding(SHORT_CONTEXT),
        prefill=prefill(architecture, cards, tp, settings.pipeline_parallel, model.quantization.method),
        ceiling=step(SHORT_CONTEXT, 0).ceiling,
        contexts=tuple((length, decoding(length)) for length in lengths),
    )


def _walks_alone(architecture: Architecture, settings: Settings, cards: Sequence[PlannedCard]) -> bool:
    """Whether attention is FLASH_ATTN on cards where it does not split a long cache: with a 16-bit cache."""
    generations = {card.capability[0] for card in cards if card.capability}
    backend = settings.backend or ("FLASH_ATTN" if settings.kv_bytes == 2 else "FLASHINFER")
    return (
        backend == "FLASH_ATTN"
        and not architecture.attention.latent
        and bool(generations)
        and not generations & SPLITTING
    )


def _cache(architecture: Architecture, settings: Settings, tokens: int) -> float:
    """Bytes of the cache that one step reads on a card; heads beyond the ranks are copies."""
    total = 0.0
    for attention in (architecture.attention, architecture.sliding):
        if attention is None:
            continue
        seen = min(tokens, attention.window or tokens)
        shared = 1 if attention.latent else min(settings.tensor_parallel, attention.kv_heads)
        total += float(attention.layers * attention.token_numbers * settings.kv_bytes) * seen / shared
    return total


def _streamed(model: ModelSource, architecture: Architecture, weight_bytes: int, tokens: int) -> float:
    """Bytes of the weights that a step of so many tokens reads: all but embeddings, vision and drafts, and
    of the experts those that any of its tokens goes through.
    """
    head = 2 * architecture.embedding_parameters
    if model.entry and model.entry.weights.streamed and weight_bytes == model.weight_bytes:
        return float(model.entry.weights.streamed)
    vocabulary = head * architecture.vocabulary_matrices
    body = max(0, weight_bytes - model.vision_bytes - model.mtp_bytes - vocabulary)
    experts, whole = architecture.experts, max(1, architecture.body_parameters)
    if experts is None:
        return float(head + body)
    once = architecture.active_parameters / whole
    untouched = (1 - experts.active / experts.count) ** tokens
    idle = 1 - once  # of one token; more tokens leave fewer experts untouched
    share = 1 - idle * untouched / max(1e-9, 1 - experts.active / experts.count)
    return head + body * share
