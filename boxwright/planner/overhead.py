"""What the engine needs of a card beside weights and KV: activations, workspaces, graphs, communication.

Only a boot can tell it, so it is a range. It is taken so that published boots lie inside: two RTX 4090 with
4,096 tokens a step 2.1 GiB, two RTX 3090 with 8,192 1.7 to 2.1 GiB, one RTX PRO 6000 with 8,192 2.9 GiB;
profiling misses up to 2.9 GiB on an RTX 5090 (vllm-project/vllm#44209).
"""

from __future__ import annotations

from dataclasses import dataclass

from boxwright.catalog.architecture import Architecture
from boxwright.catalog.purpose import TEXT
from boxwright.engines.settings import Settings
from boxwright.facts.model import MIB

GIB = 1 << 30


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


def overhead(architecture: Architecture, settings: Settings, vision: bool) -> Span:
    """Bytes on each card."""
    tp, tokens = settings.tensor_parallel, settings.batched_tokens
    width = 3 * (architecture.hidden + _widest(architecture) // tp)
    activations = tokens * width * 2
    sampler = settings.concurrency * (1 + settings.draft_tokens) * architecture.vocab * 8
    if settings.serves != TEXT:
        sampler = 0  # no next token is chosen
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
    if experts is None:
        return architecture.intermediate
    return max(architecture.intermediate, experts.active * experts.intermediate)
