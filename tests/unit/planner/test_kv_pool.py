"""The KV pool against numbers that vLLM itself printed: every published boot line must reproduce to the
token.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxwright import catalog
from boxwright.planner.kv_groups import UnknownCache
from boxwright.planner.kv_pool import PoolSpec, layout, prefix_caching_default

CATALOG = catalog.load()
HYBRID = CATALOG.models["qwen3.8-27b"].architecture
DENSE = CATALOG.models["qwen3-8b"].architecture
DFLASH = CATALOG.drafters[0].attention
BF16, FP8, NVFP4 = Fraction(2), Fraction(1), Fraction(9, 16)
MIB = 1 << 20


def mtp(tokens, kv, tp=1, **more):
    return layout(PoolSpec(HYBRID, kv, tp, draft_tokens=tokens, mtp_layers=1, **more))


@pytest.mark.parametrize(
    ("pool", "pinned", "context", "tokens"),
    [
        # one RTX 5090, MTP-3, prefix caching, pinned pools
        (mtp(3, FP8), 4_400_000_000, 98_304, 99_580),
        (mtp(3, FP8), 5_600_000_000, 98_304, 127_667),
        # two RTX 5070 Ti with a 4-bit cache
        (mtp(3, NVFP4, 2), 3_152_594_944, 262_144, 274_280),
    ],
)
def test_pinned_pools_give_the_published_number(pool, pinned, context, tokens):
    assert pool.tokens(pinned, context) == tokens


@pytest.mark.parametrize(
    ("pool", "context", "blocks", "a_request", "tokens"),
    [
        # two RTX 5090, 262,144 tokens, 16-bit cache, no drafts (vllm-project/recipes)
        (layout(PoolSpec(HYBRID, BF16, 2)), 262_144, 491, 341, 377_456),
        (layout(PoolSpec(HYBRID, BF16, 2)), 262_144, 580, 341, 445_875),
        # two cards, 8-bit cache, MTP-3, prefix caching off
        (mtp(3, FP8, 2, prefix_caching=False), 262_144, 650, 176, 968_145),
        # one RTX 5090, 32,768 tokens, MTP-3
        (mtp(3, FP8), 32_768, 99, 36, 90_112),
    ],
)
def test_free_pools_are_whole_blocks(pool, context, blocks, a_request, tokens):
    assert pool.blocks(context) == a_request
    assert pool.tokens(blocks * pool.block_bytes, context) == tokens
    assert pool.tokens((blocks + 1) * pool.block_bytes - 1, context) == tokens


@pytest.mark.parametrize(
    ("pool", "block", "mib", "padding"),
    [
        (layout(PoolSpec(HYBRID, BF16)), 784, 49, 0),
        (layout(PoolSpec(HYBRID, FP8)), 1568, 49, 0),
        (mtp(3, BF16), 800, 53.125, 3),
        (mtp(3, FP8), 1600, 53.125, 3),
        (layout(PoolSpec(HYBRID, BF16, draft_tokens=7, drafter=DFLASH)), 832, 16.25, 6),
        (layout(PoolSpec(HYBRID, FP8, draft_tokens=7, drafter=DFLASH)), 1648, 16.09375, 6),
    ],
)
def test_blocks_are_as_the_boot_log_says(pool, block, mib, padding):
    assert (pool.block_tokens, pool.block_bytes / MIB, pool.padding) == (block, mib, padding)


def test_dflash2_makes_fifteen_groups():
    assert len(layout(PoolSpec(HYBRID, BF16, draft_tokens=7, drafter=DFLASH)).groups) == 15


def test_the_state_of_a_sequence_is_as_measured():
    pool = layout(PoolSpec(HYBRID, BF16))
    assert pool.state_bytes == 48 * 3_207_168
    # align mode: three groups of 2 + s blocks; 294 MiB without drafts, 797 MiB with three
    assert pool.state_blocks * pool.block_bytes == 294 * MIB
    assert round(mtp(3, FP8).state_blocks * mtp(3, FP8).block_bytes / MIB) == 797


def test_a_dense_model_is_counted_in_blocks_of_sixteen():
    pool = layout(PoolSpec(DENSE, BF16))
    assert (pool.block_tokens, pool.block_bytes) == (16, 36 * 16 * 2 * 8 * 128 * 2)
    assert pool.tokens(1000 * pool.block_bytes, 16_000) == 16_000
    assert pool.fits(1001 * pool.block_bytes, 16_000)
    assert not pool.fits(1000 * pool.block_bytes, 16_000)  # one block is never given out
    assert pool.longest(1001 * pool.block_bytes, 40_960) == 16_000
    assert pool.resident(1001 * pool.block_bytes, 1024) == 15


def test_ranks_beyond_the_kv_heads_hold_copies():
    assert (
        layout(PoolSpec(HYBRID, BF16, 4)).block_bytes
        == layout(PoolSpec(HYBRID, BF16, 8)).block_bytes * 784 // 400
    )
    assert layout(PoolSpec(DENSE, BF16, 8)).block_bytes == layout(PoolSpec(DENSE, BF16, 16)).block_bytes


def test_the_block_size_asked_for_is_a_unit_of_the_hybrids_block():
    assert layout(PoolSpec(HYBRID, BF16, block_size=32)).block_tokens == 800
    assert layout(PoolSpec(DENSE, BF16, block_size=32)).block_tokens == 32


def test_prefill_checkpoints_of_0_33_take_a_block_more():
    before, after = layout(PoolSpec(HYBRID, FP8)), layout(PoolSpec(HYBRID, FP8, checkpoints=True))
    assert after.block_tokens == 1600
    assert after.block_tokens % 64 == 0
    assert after.state_blocks == before.state_blocks + 3
    assert layout(PoolSpec(HYBRID, FP8, prefix_caching=False, checkpoints=True)).block_tokens == 1568


def test_hybrids_cache_prefixes_since_0_26():
    assert not prefix_caching_default(HYBRID, "0.25.1")
    assert prefix_caching_default(HYBRID, "0.26.0")
    assert prefix_caching_default(DENSE, "0.9.2")


@given(
    st.sampled_from((HYBRID, DENSE)),
    st.sampled_from((BF16, FP8, NVFP4)),
    st.sampled_from((1, 2, 4, 8)),
    st.integers(0, 8),
    st.booleans(),
    st.integers(0, 1 << 36),
    st.integers(1, 1 << 20),
)
def test_the_pool_is_consistent(architecture, kv, tp, drafts, caching, size, context):
    pool = layout(PoolSpec(architecture, kv, tp, draft_tokens=drafts, prefix_caching=caching))
    longest = pool.longest(size, context)
    assert 0 <= longest <= context
    assert longest == 0 or pool.fits(size, longest)
    assert longest == context or not pool.fits(size, longest + 1)
    assert pool.fits(size, context) == (pool.resident(size, context) >= 1)
    assert pool.count(size) * pool.block_bytes <= size


WINDOWS = catalog.load().models["qwen3-8b"].architecture


def windows(**more):
    """Half of the layers see 1,024 tokens."""
    half = replace(WINDOWS.attention, layers=18)
    model = replace(WINDOWS, attention=half, sliding=replace(half, window=1024))
    return layout(PoolSpec(model, BF16, **more))


def test_a_window_keeps_a_step_more_since_steps_overlap():
    """Since 0.26 two steps of 2,048 tokens may be under way; with n-gram drafts only one."""
    long = 100_000
    assert windows(release="0.25.1").blocks(long) == 6250 + -(-(1023 + 2048) // 16) + 1
    assert windows(release="0.26.0").blocks(long) == 6250 + -(-(1023 + 4096) // 16) + 1
    assert windows(release="0.29.0", asynchronous=False).blocks(long) == windows(release="0.25.1").blocks(
        long
    )
    assert windows(release="0.29.0", pipeline_parallel=2).blocks(long) == 6250 + -(-(1023 + 6144) // 16) + 1


def test_without_the_hybrid_manager_windows_keep_everything():
    pool = windows(windows=False)
    assert pool.blocks(100_000) == 6250
    assert pool.block_bytes == 2 * windows().block_bytes


def test_the_boot_line_counted_blocks_of_a_group_before_0_20_1():
    pool = windows(release="0.20.0")
    assert pool.tokens(1001 * pool.block_bytes, 8192) == 1001 // 2 * 16
    assert windows(release="0.20.1").tokens(1001 * pool.block_bytes, 8192) == int(
        1001 / windows(release="0.20.1").blocks(8192) * 8192
    )


def test_the_spare_block_counts_since_0_29():
    before, since = (layout(PoolSpec(DENSE, BF16, release=release)) for release in ("0.28.0", "0.29.0"))
    assert before.fits(1000 * before.block_bytes, 16_000)
    assert not since.fits(1000 * since.block_bytes, 16_000)


@pytest.mark.parametrize(("release", "layers"), [("0.17.1", 12), ("0.18.0", 16)])
def test_buckets_of_about_one_size_are_not_cut_since_0_18_at_half_more(release, layers):
    half = replace(WINDOWS.attention, layers=12)
    model = replace(WINDOWS, layers=28, attention=half, sliding=replace(half, layers=16, window=1024))
    pool = layout(PoolSpec(model, BF16, release=release))
    assert pool.block_bytes == layers * 16 * 2 * 8 * 128 * 2


def test_pages_that_do_not_divide_are_padded_since_0_24():
    odd = replace(WINDOWS.attention, layers=18, kv_heads=3, window=1024)
    model = replace(WINDOWS, attention=replace(WINDOWS.attention, layers=18), sliding=odd)
    with pytest.raises(UnknownCache, match=r"pads since 0\.24"):
        layout(PoolSpec(model, BF16, release="0.23.0"))
    assert layout(PoolSpec(model, BF16, release="0.24.0")).block_bytes == 18 * 16 * 2 * 8 * 128 * 2


def test_states_are_not_cached_before_0_15():
    spec = PoolSpec(HYBRID, BF16, prefix_caching=True, release="0.14.1")
    assert layout(spec).state_blocks == layout(replace(spec, prefix_caching=False)).state_blocks == 3


def test_stages_get_their_own_share_of_a_block():
    """64 layers on two stages: 8 of 16 full ones each, the draft layer on the last."""
    pool = mtp(3, FP8, pipeline_parallel=2)
    page = 1600 * 2 * 4 * 256
    assert pool.stage_bytes == (8 * page, 9 * page)
    assert pool.block_bytes == 9 * page
