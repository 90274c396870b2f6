"""The ranges against public measurements (measured/*.csv; sources in their first column)."""

from __future__ import annotations

import csv
import statistics
from pathlib import Path

from boxwright import catalog, planner
from boxwright.planner.figures import speed_of as speed
from boxwright.planner.speed import Step
from boxwright.spec.box import Box, Cards, Deployment, ModelRef, Speculative

CATALOG = catalog.load()
MEASURED = Path(__file__).parent / "measured"
BANDWIDTH = {"3090": 936e9, "4090": 1008e9, "5090": 1792e9, "PRO6000": 1792e9, "V100": 900e9}
#: Bytes of KV a token of Qwen3.8-27B over all cards.
KV = {"fp8fi": 32_768, "bf16fa2": 65_536, "none": 65_536}
#: Kernels that slow down with the context are told at short ones.
SHORT = 20_000
LAYERS = 64


def rows(name):
    with (MEASURED / name).open() as stream:
        return [row for row in csv.DictReader(stream) if int(row["context_tokens"]) <= SHORT]


def step(row):
    cards = int(row["tensor_parallel"])
    read = float(row["streamed_weight_bytes"]) + KV[row["kv"]] * int(row["context_tokens"])
    return Step(
        read / cards,
        BANDWIDTH[row["gpu"]],
        LAYERS,
        cards,
        int(row.get("draft_tokens") or 0),
        int(row.get("draft_passes") or 0),
        float(row.get("draft_bytes_per_pass") or 0) / cards,
    )


def share_inside(measured):
    inside = 0
    for row in measured:
        found = step(row).tokens_per_second()
        inside += found.low <= float(row["decode_tokens_per_s"]) <= found.high
    return inside / len(measured)


def test_decoding_without_drafts_lies_in_the_range():
    measured = rows("decode_measured.csv")
    assert len(measured) >= 19
    assert share_inside(measured) >= 0.9


def test_decoding_with_drafts_lies_in_the_range():
    assert share_inside(rows("decode_speculative_measured.csv")) >= 0.85


def test_the_ranges_say_something():
    plain = [step(row).tokens_per_second() for row in rows("decode_measured.csv")]
    drafted = [step(row).tokens_per_second() for row in rows("decode_speculative_measured.csv")]
    assert statistics.mean(one.high / one.low for one in plain) < 2
    assert statistics.mean(one.high / one.low for one in drafted) < 4


def found(card="rtx5090", count=1, model="qwen3.8-27b-int4", **changes):
    deployment = Deployment("q", ModelRef(name=model), "vllm/vllm-openai:v0.29.0", context=32768, **changes)
    box = Box("box1", gpus=(Cards(card, count),), deployments=(deployment,))
    return speed(planner.plan(box, planner.offline_facts(box, CATALOG), CATALOG).cases[0])


def test_nothing_is_promised_beyond_the_bandwidth():
    for card in ("rtx3090", "rtx4090", "rtx5090"):
        one = found(card, kv_cache="fp8")
        assert one
        assert one.decode.low < one.decode.high < one.ceiling
    # facts/seeds.md 000-58: 98 tokens a second without drafts are 93 % of the bandwidth
    one = found(kv_cache="fp8")
    assert one
    assert one.decode.high < 98


def test_drafts_raise_the_range_and_widen_it():
    plain, drafted = found(kv_cache="fp8"), found(kv_cache="fp8", speculative=Speculative("mtp", 3))
    assert plain
    assert drafted
    assert drafted.decode.high > plain.decode.high


def test_of_a_mixture_only_the_active_experts_are_read():
    moe, dense = found(model="qwen3-30b-a3b-int4"), found(model="qwen3-32b-awq")
    assert moe
    assert dense
    assert moe.decode.low > 3 * dense.decode.low


def test_a_card_without_a_known_peak_has_no_prefill_range():
    one = found("rtx5090d")
    assert one
    assert one.prefill is None
