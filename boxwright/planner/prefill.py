"""How fast a prompt is read: arithmetic on each card, and the link between them.

Arithmetic: 0.35 to 0.75 of the dense 16-bit peak; 8-bit and 4-bit arithmetic, where card and weights have it,
up to 1.25 of that peak (public rows: 0.55 to 0.83 and up to 1.1). Link: every layer's two all-reduces move a
token's hidden state once for two ranks, 2 (n - 1) / n times for n: 1.31 MB a token of Qwen3.8-27B, which caps
two cards on 12.8 GB/s at 9,766 tokens a second however fast they are. At worst the two add up, at best the
slower one hides the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from boxwright.catalog.architecture import Architecture
from boxwright.planner.cards import PlannedCard
from boxwright.planner.decode import Range

#: Share of the 16-bit peak: slow, fast, and fast with 8-bit arithmetic.
REACHED, NARROW = (0.35, 0.75), 1.25
#: Formats whose arithmetic has 8 bits or 4, on cards that have it.
NARROW_FORMATS = frozenset({"fp8", "nvfp4", "modelopt", "modelopt_fp4", "fbgemm_fp8"})
NATIVE_SINCE = (8, 9)
#: Bytes a second of one lane, by generation of PCIe, and the share of them that copies reach: through the
#: host's memory, and at best.
LANE = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}
COPIED = (0.4, 0.81)
#: Bytes a second of NVLink in one direction: a bridge of four links, and a switched card's.
NVLINK = {"bridge": 56e9, "switch": 300e9}


def prefill(
    architecture: Architecture, cards: Sequence[PlannedCard], ranks: int, stages: int, format_: str | None
) -> Range | None:
    """Tokens a second of one long prompt; None for cards whose peak is unknown.

    ranks: that share a layer. stages: of a pipeline, through which one prompt's steps follow each other.
    """
    peaks = [card.kind.tflops for card in cards if card.kind and card.kind.tflops]
    if len(peaks) != len(cards) or not peaks:
        return None
    peak = min(peaks) * 1e12 / (2.0 * architecture.active_parameters)
    narrow = format_ in NARROW_FORMATS and all((card.capability or ()) >= NATIVE_SINCE for card in cards)
    slow, fast = REACHED[0] * peak * ranks, (NARROW if narrow else REACHED[1]) * peak * ranks
    if ranks > 1:
        moved = 2 * architecture.layers * architecture.hidden * 2 * 2 * (ranks - 1) / ranks
        link = _link(cards)
        slow = 1 / (1 / slow + moved / link.low)
        fast = min(fast, link.high / moved)
    return Range(slow, fast * stages)  # chunks of a prompt may keep all stages busy


def _link(cards: Sequence[PlannedCard]) -> Range:
    """Bytes a second between the cards: of the narrowest slot as the host says it, or as cards have them."""
    lanes = []
    for card in cards:
        kind = card.kind
        generation = (card.card.link.max_generation or (kind.pcie_generation if kind else 0)) or 4
        lanes.append(
            (card.card.link.width or (kind.pcie_width if kind else 0) or 16) * LANE.get(generation, 2e9)
        )
    low, high = (share * min(lanes) for share in COPIED)
    bridges = [NVLINK.get(card.kind.nvlink or "", 0.0) if card.kind else 0.0 for card in cards]
    if all(card.kind and card.kind.nvlink == "switch" for card in cards):
        low = min(bridges)
    return Range(low, max(high, min(bridges)))
