"""vLLM's KV pool, by its own integer arithmetic: blocks, tokens, sequences.

Source: vllm v1/core/kv_cache_utils.py, v1/kv_cache_interface.py, platforms/interface.py
(_align_hybrid_block_size) and model_executor/layers/mamba/mamba_utils.py of 0.25 to 0.33. The published boot
lines `GPU KV cache size: N tokens` reproduce to the token (tests/unit/planner/test_kv_pool.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from boxwright.catalog import reading
from boxwright.catalog.architecture import Architecture, Attention

#: Tokens of a block where nothing asks for more.
BLOCK_TOKENS = 16
#: Since this release a hybrid model takes one more block a state group, and blocks of a multiple of 64
#: tokens, where FlashInfer's prefill kernel for linear attention is in use and prefixes are cached.
PREFILL_CHECKPOINTS_SINCE = "0.33.0"
CHECKPOINT_ALIGNMENT = 64

#: Bytes that one number of the KV cache takes. nvfp4: 4 bits and an 8-bit scale for every 16 numbers.
KV_BYTES = {
    "bf16": Fraction(2),
    "fp16": Fraction(2),
    "fp8": Fraction(1),
    "fp8_e4m3": Fraction(1),
    "fp8_e5m2": Fraction(1),
    "nvfp4": Fraction(9, 16),
}


@dataclass(frozen=True)
class PoolSpec:
    """What a pool's layout depends on.

    kv_bytes: of one number (KV_BYTES). draft_tokens: a step, 0 without drafting. mtp_layers: draft layers
    that keep KV like the model's own. drafter: attention of a second model that drafts. batched_tokens: of
    one step. block_size: tokens asked for, None for the engine's choice. checkpoints: see
    PREFILL_CHECKPOINTS_SINCE.
    """

    architecture: Architecture
    kv_bytes: Fraction
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    draft_tokens: int = 0
    mtp_layers: int = 0
    drafter: Attention | None = None
    prefix_caching: bool = True
    batched_tokens: int = 2048
    block_size: int | None = None
    checkpoints: bool = False
    async_scheduling: bool = True


@dataclass(frozen=True)
class Group:
    """Layers that share a block table.

    kind: full, sliding or state; window: tokens; blocks: fixed a sequence.
    """

    kind: str
    window: int = 0
    blocks: int = 0


@dataclass(frozen=True)
class Pool:
    """The layout of a pool on one card.

    block_tokens: of an attention block. block_bytes: of one block over all layers of a group. state_bytes: of
    one sequence's state on this card, 0 without linear attention. padding: layers that rounding adds.
    """

    block_tokens: int
    block_bytes: int
    groups: tuple[Group, ...]
    state_bytes: int
    padding: int
    in_flight: int

    def blocks(self, tokens: int) -> int:
        """Blocks that one sequence of so many tokens takes."""
        return sum(self._of(group, tokens) for group in self.groups)

    def _of(self, group: Group, tokens: int) -> int:
        if group.kind == "state":
            return group.blocks
        if group.kind == "sliding":
            return _ceil(min(group.window - 1 + self.in_flight, tokens), self.block_tokens) + 1
        return _ceil(tokens, self.block_tokens)

    def count(self, pool_bytes: int) -> int:
        """Blocks in a pool of so many bytes on a card."""
        return max(0, pool_bytes) // self.block_bytes

    def concurrency(self, pool_bytes: int, context: int) -> float:
        """Sequences of the whole context that the pool holds, as the boot line says it."""
        return self.count(pool_bytes) / self.blocks(context)

    def tokens(self, pool_bytes: int, context: int) -> int:
        """The N of the boot line `GPU KV cache size: N tokens`."""
        return int(self.concurrency(pool_bytes, context) * context)

    def resident(self, pool_bytes: int, tokens: int) -> int:
        """Whole sequences of so many tokens that fit at once; one block is never given out."""
        return max(0, self.count(pool_bytes) - 1) // self.blocks(tokens)

    def fits(self, pool_bytes: int, context: int) -> bool:
        """Whether the engine starts: one sequence of the whole context, and the block that is never given
        out.
        """
        return self.blocks(context) <= self.count(pool_bytes) - 1

    def longest(self, pool_bytes: int, limit: int) -> int:
        """The largest context that fits, at most `limit`; 0 when not even one block's does."""
        low, high = 0, max(0, limit)
        while low < high:
            middle = (low + high + 1) // 2
            if self.fits(pool_bytes, middle):
                low = middle
            else:
                high = middle - 1
        return low

    @property
    def state_blocks(self) -> int:
        """Blocks that every running sequence takes for its state, however short."""
        return sum(group.blocks for group in self.groups if group.kind == "state")


def prefix_caching_default(architecture: Architecture, release: str) -> bool:
    """Whether the engine caches prefixes when nobody says: always, but hybrids only since vLLM 0.26."""
    return not architecture.is_hybrid or reading.version(release) >= (0, 26)


def layout(spec: PoolSpec) -> Pool:
    """The pool's layout on a card of the deployment (with pipeline stages, of the fullest)."""
    architecture, attention = spec.architecture, spec.architecture.attention
    token_bytes = _token_bytes(attention, spec.kv_bytes, spec.tensor_parallel)
    state = _state_bytes(spec) if architecture.linear else 0
    block = _block_tokens(spec, token_bytes, state)
    page = block * token_bytes
    buckets = _buckets(spec, page, block)
    if len(buckets) == 1:
        size = buckets[0][1]
    else:
        smallest, largest = min(n for _, n in buckets), max(n for _, n in buckets)
        size = largest if largest < smallest * 1.5 else smallest
    groups = tuple(group for group, layers in buckets for _ in range(_ceil(layers, size)))
    padding = sum(-layers % size for _, layers in buckets)
    own = _ceil(size, spec.pipeline_parallel)
    in_flight = spec.batched_tokens * (2 if spec.async_scheduling else 1)
    state_bytes = (
        state * _ceil(architecture.linear.layers, spec.pipeline_parallel) if architecture.linear else 0
    )
    return Pool(block, own * page, groups, state_bytes, padding, in_flight)


def _ceil(value: int, by: int) -> int:
    return -(-value // by)


def _token_bytes(attention: Attention, kv_bytes: Fraction, tensor_parallel: int) -> int:
    heads = max(1, attention.kv_heads // tensor_parallel)
    return _ceil(
        (2 * heads * attention.head_dim * kv_bytes).numerator,
        (2 * heads * attention.head_dim * kv_bytes).denominator,
    )


def _state_bytes(spec: PoolSpec) -> int:
    """One layer's state of one sequence: the convolution's window (16-bit) and the recurrent matrix."""
    linear, tp = spec.architecture.linear, spec.tensor_parallel
    if linear is None:
        return 0
    width = 2 * linear.key_heads * linear.key_head_dim + linear.value_heads * linear.value_head_dim
    window = (width // tp) * (linear.conv_kernel - 1 + spec.draft_tokens) * 2
    heads = max(1, linear.value_heads // tp)
    return window + heads * linear.value_head_dim * linear.key_head_dim * linear.state_bytes


def _block_tokens(spec: PoolSpec, token_bytes: int, state: int) -> int:
    unit = max(BLOCK_TOKENS, spec.block_size or 0)
    if not state:
        return unit
    if spec.checkpoints and spec.prefix_caching and unit % CHECKPOINT_ALIGNMENT:
        unit = unit * CHECKPOINT_ALIGNMENT // _gcd(unit, CHECKPOINT_ALIGNMENT)
    return unit * _ceil(state, unit * token_bytes)


def _gcd(one: int, other: int) -> int:
    while other:
        one, other = other, one % other
    return one


def _buckets(spec: PoolSpec, page: int, block: int) -> list[tuple[Group, int]]:
    """Layers of one kind of cache each: full attention with the draft layers, sliding windows, states."""
    architecture, attention = spec.architecture, spec.architecture.attention
    own = Group("sliding", window=attention.window) if attention.window else Group("full")
    buckets = [(own, attention.layers + spec.mtp_layers)]
    if architecture.linear:
        extra = 1 if spec.checkpoints and spec.prefix_caching else 0
        copies = (2 + extra if spec.prefix_caching else 1) + spec.draft_tokens
        buckets.append((Group("state", blocks=copies), architecture.linear.layers))
    if spec.drafter:
        buckets.append((Group("sliding", window=spec.drafter.window or 0), spec.drafter.layers))
    return buckets
