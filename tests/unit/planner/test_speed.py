"""The ranges against public measurements (measured/*.csv; sources in their first column)."""

from __future__ import annotations

import statistics
from dataclasses import replace

import pytest

from boxwright import catalog, planner
from boxwright.facts.model import Link
from boxwright.planner.decode import FITTED, Step
from boxwright.planner.figures import speed, speed_of
from boxwright.planner.prefill import prefill
from boxwright.spec.box import Box, Cards, Deployment, ModelRef, Speculative
from tests.unit.planner import speed_fit as fit

CATALOG = catalog.load()
MTP2, MTP3, DFLASH2 = Speculative("mtp", 2), Speculative("mtp", 3), Speculative("dflash2", 7)


def share_inside(pairs):
    """How many measured rows lie inside the range that the coefficients give."""
    pairs = list(pairs)
    inside = 0
    for row, by in pairs:
        found = fit.step(row).range(by)
        inside += found.low <= fit.rate(row) <= found.high
    return inside / len(pairs)


def width(measured, by=FITTED):
    """Mean of a range's upper end over its lower one."""
    ranges = [fit.step(row).range(by) for row in measured]
    return statistics.mean(one.high / one.low for one in ranges)


def test_the_coefficients_are_the_fit_of_all_rows():
    plain = fit.fit_plain(fit.rows(fit.PLAIN))
    drafted = fit.fit_drafted(fit.rows(fit.DRAFTED), FITTED)
    for name in ("read", "launch", "reduce", "cache", "unsplit"):
        assert getattr(FITTED, name) == pytest.approx(getattr(plain, name), rel=0.02), name
    assert FITTED.draft_pass == pytest.approx(drafted.draft_pass, rel=0.02)


def test_rigs_left_out_lie_in_the_range_without_drafts():
    measured = fit.rows(fit.PLAIN)
    assert len(measured) == 33
    assert len({fit.rig(row) for row in measured}) == 9
    pairs = list(fit.left_out(measured, fit.fit_plain))
    assert statistics.mean(abs(error) for error in fit.errors(pairs)) < 0.08
    assert share_inside(pairs) >= 0.9
    assert width(measured) <= 1.5


def test_rigs_left_out_lie_in_the_range_with_drafts():
    measured = fit.rows(fit.DRAFTED)
    assert len(measured) == 29
    pairs = list(fit.left_out(measured, lambda rest: fit.fit_drafted(rest, FITTED)))
    assert share_inside(pairs) >= 0.9
    assert len({fit.rig(row) for row in measured}) == 11
    assert width(measured) <= 2.05


@pytest.mark.parametrize(("longest", "least"), [(10_000, 0.95), (300_000, 0.8)])
def test_a_whole_source_left_out_lies_in_the_range(longest, least):
    """Harder than a rig: only one source tells of long contexts, and without it nothing tells of the kernel
    that does not split them.
    """
    measured = [row for row in fit.rows(fit.PLAIN) if int(row["context_tokens"]) <= longest]
    pairs = []
    for source in sorted({fit.rig(row)[0] for row in measured}):
        rest = fit.fit_plain([row for row in measured if fit.rig(row)[0] != source])
        pairs += [(row, rest) for row in measured if fit.rig(row)[0] == source]
    assert share_inside(pairs) >= least


def test_the_facts_own_rows_with_drafts():
    """Eight of nine: the ninth ran hard text on WSL2."""
    measured = fit.rows(("decode_speculative_measured.csv",))
    outside = [row["source"] for row in measured if share_inside([(row, FITTED)]) < 1]
    assert outside == ["STV 5090 NVFP4 MTP-3 xhigh, WSL2"]


def test_long_contexts_with_drafts_lie_in_the_range():
    measured = fit.rows(fit.LONG)
    assert share_inside((row, FITTED) for row in measured) >= 0.9
    # the same cards and drafts: 8-bit keys hold their speed, 16-bit keys lose nine tenths of it
    rates = {(row["kv"], row["context_tokens"]): fit.step(row).rate() for row in measured}
    assert rates["fp8fi", "260096"] > 0.9 * rates["fp8fi", "8192"]
    assert rates["bf16fa2", "260096"] < 0.2 * rates["bf16fa2", "8192"]


def found(card="rtx5090", count=1, model="qwen3.8-27b-int4", **changes):
    values = {"context": 131072, "kv_cache": "fp8", **changes}
    deployment = Deployment("q", ModelRef(name=model), "vllm/vllm-openai:v0.29.0", **values)
    box = Box("box1", gpus=(Cards(card, count),), deployments=(deployment,))
    return planner.plan(box, planner.offline_facts(box, CATALOG), CATALOG).cases[0]


def decode(at=None, **changes):
    one = speed_of(found(**changes))
    assert one
    return dict(one.contexts)[at] if at else one.decode


def test_nothing_is_promised_beyond_the_bandwidth():
    for card in ("rtx3090", "rtx4090", "rtx5090"):
        one = speed_of(found(card))
        assert one
        assert one.decode.low < one.decode.high < one.ceiling
    assert Step(weights=1e9, bandwidth=1e12, layers=0, drafts=8).range().high <= 9 * 1000


@pytest.mark.parametrize(
    ("claim", "context", "changes"),
    [
        # facts/seeds.md: what the first report says it measured, and its own arithmetic forbids
        (95, None, {}),  # 000-47
        (98, 50_000, {}),  # 000-58: 93 % of the bandwidth
        (168, None, {"speculative": MTP2}),  # 000-60
        (168, 50_000, {"speculative": MTP2}),
        (187, None, {"speculative": MTP3}),  # 000-61
        (187, 50_000, {"speculative": MTP3}),
        (245, None, {"count": 2, "speculative": MTP2}),  # 000-80
        (220, 131_072, {"count": 2, "speculative": MTP2}),  # 000-85
    ],
)
def test_impossible_figures_lie_beyond_the_range(claim, context, changes):
    asked = context or 131_072
    assert decode(context, **{"context": asked, **changes}).high < claim


@pytest.mark.parametrize(
    ("low", "high", "changes"),
    [
        (67, 75, {"card": "rtx3090", "count": 2, "speculative": MTP3}),  # facts/seeds.md 003-05
        (67.6, 85, {"card": "rtx4090", "count": 2, "speculative": MTP2}),  # 004-43 and its peak
        (120, 159, {"speculative": MTP3, "model": "qwen3.8-27b-nvfp4"}),  # 000-48
    ],
)
def test_what_others_measured_lies_in_the_range(low, high, changes):
    one = decode(**changes)
    assert one.low <= low
    assert high <= one.high


def test_drafts_raise_the_range_and_widen_it():
    plain, drafted = decode(), decode(speculative=MTP3)
    assert drafted.high > plain.high
    assert drafted.high / drafted.low > plain.high / plain.low


def test_drafts_from_the_prompt_may_all_miss():
    plain, copied = decode(), decode(speculative=Speculative("ngram", 3))
    assert copied.low == plain.low
    assert copied.high > plain.high


def test_long_16_bit_caches_are_slow_where_the_kernel_does_not_split_them():
    card = {"card": "rtx3090", "count": 2, "context": 262_144}
    fp8, bf16 = decode(262_144, **card), decode(262_144, kv_cache="bf16", **card)
    assert bf16.high < fp8.low
    hopper = {"card": "h100", "context": 262_144}
    assert decode(262_144, kv_cache="bf16", **hopper).low > 0.7 * decode(262_144, **hopper).low


def test_of_a_mixture_only_the_touched_experts_are_read():
    moe, dense = (
        decode(model="qwen3-30b-a3b-int4", context=32768),
        decode(model="qwen3-32b-awq", context=32768),
    )
    assert moe.low > 2 * dense.low


def test_a_card_without_a_known_peak_has_no_prefill_range():
    one = speed_of(found("rtx5090d"))
    assert one
    assert one.prefill is None


def test_prefill_is_capped_by_the_link():
    """facts/planner.md 4.3: 9,766 tokens a second over 12.8 GB/s, and no seed's 10,000 on two RTX 3090."""
    two = speed_of(found("rtx3090", 2))
    assert two
    assert two.prefill
    assert two.prefill.low <= 1166 < 1956 <= two.prefill.high < 10_000
    one = speed_of(found())
    assert one
    assert one.prefill
    assert one.prefill.high < 3500  # 000-82: 98 % of the 16-bit peak


def test_a_narrow_slot_lowers_what_a_prompt_may_reach():
    case = found("rtx4090", 2)
    slow = [
        replace(card, card=replace(card.card, link=Link(max_generation=2, width=4))) for card in case.cards
    ]
    wide, narrow = (prefill(case.architecture, cards, 2, 1, None) for cards in (case.cards, slow))
    assert narrow.high == pytest.approx(0.81 * 2e9 / (2 * 64 * 5120 * 2))
    assert narrow.low < wide.low


def test_the_plan_tells_each_context():
    said = speed(found("rtx3090", 2, speculative=MTP3, context=262_144))
    assert said
    assert [one["context_tokens"] for one in said["decode_by_context"]] == [8192, 32768, 131072, 262144]
    rates = [one["tokens_per_s"]["high"] for one in said["decode_by_context"]]
    assert rates == sorted(rates, reverse=True)
    assert said["decode_tokens_per_s"]["high"] >= rates[0]
