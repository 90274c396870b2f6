"""vLLM's KV pool, by its own integer arithmetic: blocks, tokens, sequences.

Source: vllm v1/core/kv_cache_utils.py, v1/kv_cache_interface.py, platforms/interface.py
(_align_hybrid_block_size) and model_executor/layers/mamba/mamba_utils.py of 0.13 to 0.33. The published boot
lines `GPU KV cache size: N tokens` reproduce to the token (tests/unit/planner/boots.yml).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from boxwright.catalog import reading
from boxwright.catalog.architecture import Architecture, Attention
from boxwright.planner import kv_groups
from boxwright.planner.kv_groups import Arithmetic, Bucket, Group, UnknownCache

#: Tokens of a block where nothing asks for more.
BLOCK_TOKENS = 16
#: Tokens of a block of latent attention on the data-centre generations, whose kernels want as many.
LATENT_BLOCK_TOKENS = {9: 64, 10: 128}
#: Since this release a hybrid model takes one more block a state group, and blocks of a multiple of 64
#: tokens, where FlashInfer's prefill kernel for linear attention is in use and prefixes are cached.
PREFILL_CHECKPOINTS_SINCE = "0.33.0"
CHECKPOINT_ALIGNMENT = 64
#: Since these releases the states of hybrid models can be cached with their prefix, and are unless asked not.
STATES_CACHED_SINCE, STATES_CACHED_BY_DEFAULT_SINCE = (0, 15), (0, 26)

#: Families whose layers see chunks of the context rather than a window that moves.
CHUNKED = frozenset({"llama4", "llama4_text"})

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
    PREFILL_CHECKPOINTS_SINCE. generation: first number of the cards' compute capability. state_bytes: of one
    number of a recurrent state, None for the model's. windows: the engine frees what left a window (its
    hybrid manager is on).
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
    asynchronous: bool = True
    release: str = "0.29.0"
    generation: int | None = None
    state_bytes: int | None = None
    windows: bool = True


@dataclass(frozen=True)
class Pool:
    """The layout of a pool.

    block_tokens: of a block of the layers that see the whole context. stage_bytes: of one block on a card of
    each pipeline stage. state_bytes: of one sequence's state on a card of the fullest stage, 0 without linear
    attention. padding: layers that rounding adds. in_flight: tokens that a window keeps beside itself.
    """

    block_tokens: int
    stage_bytes: tuple[int, ...]
    groups: tuple[Group, ...]
    state_bytes: int
    padding: int
    in_flight: int
    rules: Arithmetic = field(default_factory=lambda: kv_groups.arithmetic("0.29.0"))

    @property
    def block_bytes(self) -> int:
        """Bytes of one block on a card, of the fullest stage."""
        return max(self.stage_bytes)

    def blocks(self, tokens: int) -> int:
        """Blocks that one sequence of so many tokens takes."""
        return sum(self._of(group.bucket, tokens) for group in self.groups)

    def _of(self, bucket: Bucket, tokens: int) -> int:
        if bucket.kind == "state":
            return bucket.copies
        if bucket.kind == "chunked":
            return _ceil(min(bucket.window + self.in_flight, tokens), bucket.block)
        if bucket.kind == "sliding":
            return _ceil(min(bucket.window - 1 + self.in_flight, tokens), bucket.block) + 1
        return _ceil(tokens, bucket.block)

    def count(self, pool_bytes: int, stage: int | None = None) -> int:
        """Blocks in a pool of so many bytes on a card of a stage, of the fullest when none is named."""
        return max(0, pool_bytes) // (self.block_bytes if stage is None else self.stage_bytes[stage])

    def concurrency(self, pool_bytes: int, context: int) -> float:
        """Sequences of the whole context that the pool holds, as the boot line says it."""
        return self.count(pool_bytes) / self.blocks(context)

    def tokens(self, pool_bytes: int, context: int) -> int:
        """The N of the boot line `GPU KV cache size: N tokens`."""
        if not self.rules.whole_contexts:
            smallest = min(group.bucket.block for group in self.groups)
            return self.count(pool_bytes) // len(self.groups) * smallest
        return int(self.concurrency(pool_bytes, context) * context)

    def resident(self, pool_bytes: int, tokens: int) -> int:
        """Whole sequences of so many tokens that fit at once; one block is never given out."""
        return max(0, self.count(pool_bytes) - 1) // self.blocks(tokens)

    def fits(self, pool_bytes: int, context: int) -> bool:
        """Whether the engine starts: one sequence of the whole context fits.

        Since 0.29 beside the block that is never given out; releases before start without it to spare.
        """
        return self.blocks(context) + self.rules.spare <= self.count(pool_bytes)

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
        return sum(group.bucket.copies for group in self.groups)


def prefix_caching_default(architecture: Architecture, release: str) -> bool:
    """Whether the engine caches prefixes when nobody says: always, but hybrids only since vLLM 0.26."""
    return not architecture.is_hybrid or reading.version(release) >= STATES_CACHED_BY_DEFAULT_SINCE


def layout(spec: PoolSpec) -> Pool:
    """The pool's layout. Raises UnknownCache for a model whose cache the plan does not know."""
    architecture = spec.architecture
    if architecture.unknown_cache:
        raise UnknownCache(architecture.unknown_cache)
    if architecture.linear and architecture.linear.kind != "gated-delta" and _states_cached(spec):
        raise UnknownCache("the states that Mamba layers keep for cached prefixes")
    rules = kv_groups.arithmetic(spec.release, asynchronous=spec.asynchronous)
    state = _state_bytes(spec)
    block = _block_tokens(spec, state)
    found = kv_groups.groups(_buckets(spec, block), rules)
    drafts = spec.mtp_layers + (spec.drafter.caches if spec.drafter else 0)
    ends = kv_groups.stages(architecture.layers, drafts, spec.pipeline_parallel)
    linear = _ceil(architecture.linear.layers, len(ends)) if architecture.linear else 0
    full = next((one.bucket for one in found.groups if one.bucket.kind == "full"), found.groups[0].bucket)
    steps = rules.steps + (len(ends) - 1 if rules.steps > 1 else 0)
    return Pool(
        full.block,
        found.block_bytes(ends),
        found.groups,
        state * linear,
        found.padding,
        spec.batched_tokens * steps,
        rules,
    )


def _ceil(value: int, by: int) -> int:
    return -(-value // by)


def _token_bytes(attention: Attention, spec: PoolSpec) -> int:
    """Bytes that one token keeps in one layer on one card; a latent is kept whole on every card."""
    if attention.latent:
        return math.ceil(attention.token_numbers * spec.kv_bytes)
    heads = max(1, attention.kv_heads // spec.tensor_parallel)
    return math.ceil(2 * heads * attention.head_dim * spec.kv_bytes)


def _state_bytes(spec: PoolSpec) -> int:
    """One layer's state of one sequence: the convolution's window (16-bit) and the recurrent matrix."""
    linear, tp = spec.architecture.linear, spec.tensor_parallel
    if linear is None:
        return 0
    # Ranks that cannot share Mamba's groups of heads copy them.
    copied = linear.kind == "mamba2" and linear.key_heads % tp
    keys = tp if copied else linear.key_heads
    width = 2 * keys * linear.key_head_dim + linear.value_heads * linear.value_head_dim
    window = (width // tp) * (linear.conv_kernel - 1 + spec.draft_tokens) * 2
    heads = max(1, linear.value_heads // tp)
    number = spec.state_bytes or linear.state_bytes
    return window + heads * linear.value_head_dim * linear.key_head_dim * number


def _block_tokens(spec: PoolSpec, state: int) -> int:
    """Tokens of a block: of a hybrid as many as make its page hold a state."""
    attention = spec.architecture.attention
    least = LATENT_BLOCK_TOKENS.get(spec.generation or 0, BLOCK_TOKENS) if attention.latent else BLOCK_TOKENS
    unit = max(least, spec.block_size or 0)
    if not state:
        return unit
    if spec.checkpoints and _states_cached(spec):
        unit = math.lcm(unit, CHECKPOINT_ALIGNMENT)
    return unit * _ceil(state, unit * _token_bytes(attention, spec))


def _states_cached(spec: PoolSpec) -> bool:
    return spec.prefix_caching and reading.version(spec.release) >= STATES_CACHED_SINCE


def _buckets(spec: PoolSpec, block: int) -> list[Bucket]:
    """Layers of one kind of cache each: full attention with the draft layers, sliding windows, states."""
    architecture, attention = spec.architecture, spec.architecture.attention
    whole = kv_groups.places(architecture.layers, attention.layers) if attention.layers else ()
    others = tuple(sorted(set(range(architecture.layers)) - set(whole)))
    drafts = tuple(range(architecture.layers, architecture.layers + spec.mtp_layers))
    buckets = [_attention(spec, attention, whole[: attention.caches] + drafts, block)]
    if architecture.sliding:
        sliding = architecture.sliding
        buckets.append(_attention(spec, sliding, others[: sliding.caches], block))
    if architecture.linear:
        cached = _states_cached(spec)
        copies = (1 + cached + (cached and spec.checkpoints)) + spec.draft_tokens
        page = block * _token_bytes(attention, spec)
        # Layers that keep both, keys with values and a state, are all of them.
        both = architecture.linear.layers > len(others)
        places = tuple(range(architecture.layers)) if both else others[: architecture.linear.layers]
        buckets.append(Bucket("state", places, block, page, copies=copies))
    if spec.drafter:
        behind = architecture.layers + spec.mtp_layers
        places = tuple(range(behind, behind + spec.drafter.caches))
        buckets.append(_attention(spec, spec.drafter, places, block))
    return buckets


def _attention(spec: PoolSpec, attention: Attention, layers: tuple[int, ...], block: int) -> Bucket:
    page = block * _token_bytes(attention, spec)
    if attention.window and spec.windows:
        chunked = spec.architecture.model_type in CHUNKED
        return Bucket("chunked" if chunked else "sliding", layers, block, page, window=attention.window)
    return Bucket("full", layers, block, page)
