"""Figures of what the real `vllm bench serve` 0.32 wrote, recorded; it asked a stand-in that streams answers.

prompts.json, context.json: its results, whole. kept.json: the run that engine_bench made of such results.
"""

import json
import statistics
from pathlib import Path

import pytest

from boxwright.bench.figures import REASONS, figures, throttled
from boxwright.bench.run import Place, expectations, prompts, read

RECORDED = Path(__file__).parent / "recorded"
KEPT = json.loads((RECORDED / "kept.json").read_text())


def result(name):
    return json.loads((RECORDED / f"{name}.json").read_text())


@pytest.mark.parametrize(("name", "concurrency"), [("prompts", 2), ("context", 1)])
def test_figures_are_the_engines_own(name, concurrency):
    engine = result(name)
    found = figures({"engine": engine}, concurrency)
    assert found.ttft == engine["median_ttft_ms"]
    assert found.itl == engine["median_itl_ms"]
    assert found.itl_p99 == engine["p99_itl_ms"]
    assert found.output == engine["output_throughput"]
    assert found.decode == pytest.approx(1000 / engine["median_tpot_ms"])
    assert found.output == pytest.approx(engine["total_output_tokens"] / engine["duration"])
    assert (found.completed, found.failed) == (engine["completed"], 0)
    assert found.prompt_tokens == sum(engine["input_lens"])


def test_prefill_is_told_where_one_request_is_sent_at_a_time():
    engine = result("context")
    alone = figures({"engine": engine}, 1)
    assert alone.prefill == pytest.approx(sum(engine["input_lens"]) / sum(engine["ttfts"]))
    assert figures({"engine": engine}, 2).prefill is None


def test_prompt_tokens_from_the_cache_are_apart_and_not_in_the_prefill_rate():
    engine = result("context")
    half = engine["total_input_tokens"] // 2
    found = figures({"engine": engine, "counted": {"cache_hits": half, "cache_queries": 2 * half}}, 1)
    whole = figures({"engine": engine}, 1)
    assert (found.cached_tokens, whole.cached_tokens) == (half, None)
    assert found.prefill == pytest.approx(whole.prefill * (1 - half / engine["total_input_tokens"]))


def test_acceptance_is_that_of_the_counters_and_of_the_engines_own_result():
    for point in KEPT["points"]:
        for repeat in point["repeats"]:
            found = figures(repeat, point["concurrency"])
            assert found.acceptance == pytest.approx(
                repeat["engine"]["spec_decode_acceptance_rate"] / 100, abs=0.005
            )


def test_the_engine_made_no_tokens_for_others():
    assert [one.strangers for point in read(KEPT).points for one in point.repeats] == [0] * sum(
        len(point["repeats"]) for point in KEPT["points"]
    )


def test_tokens_of_others_are_what_the_counter_has_more():
    found = figures({"engine": {"total_output_tokens": 64}, "counted": {"generation_tokens": 100.0}}, 1)
    assert found.strangers == 36


def test_tokens_per_joule_take_all_cards_and_are_unknown_where_one_tells_no_power():
    engine = {"total_output_tokens": 1000}
    two = [{"energy_j": 400.0}, {"energy_j": 100.0}]
    assert figures({"engine": engine, "cards": two}, 1).tokens_per_joule == 2.0
    assert figures({"engine": engine, "cards": [*two, {"energy_j": None}]}, 1).tokens_per_joule is None
    assert figures({"engine": engine, "cards": []}, 1).tokens_per_joule is None


def test_the_worst_reason_of_any_card_is_told_first_and_idling_is_none():
    cards = [{"reasons": {"0x1": 1.0, "0x4": 0.2}}, {"reasons": {"0x4": 0.7, "0x40": 0.1}}, {"reasons": None}]
    assert list(throttled(cards).items()) == [("hardware thermal slowdown", 0.1), ("software power cap", 0.7)]
    assert throttled([{"reasons": {"0x200": 0.5, "rubbish": 1}}]) == {
        "reason 0x200": 0.5,
        "reason rubbish": 1.0,
    }
    assert len(set(REASONS.values())) == len(REASONS)


def test_a_kept_run_by_its_points():
    run = read(KEPT)
    assert [point.place for point in run.points] == [Place(2, None), Place(1, 512)]
    spread = run.points[0].spread("ttft")
    values = [one["engine"]["median_ttft_ms"] for one in KEPT["points"][0]["repeats"]]
    assert (spread.low, spread.high) == (min(values), max(values))
    assert spread.median == statistics.median(values)
    assert json.loads(json.dumps(run.to_json()))["points"][0]["figures"]["ttft_ms"]["repeats"] == len(values)


def planned(**speed):
    speed = {
        "decode_tokens_per_s": {"low": 50, "high": 60},
        "decode_ceiling_tokens_per_s": 80.0,
        "decode_by_context": [
            {"context_tokens": 8192, "tokens_per_s": {"low": 40, "high": 50}},
            {"context_tokens": 32768, "tokens_per_s": {"low": 30, "high": 40}},
        ],
        "prefill_tokens_per_s": {"low": 1000, "high": 2000},
        **speed,
    }

    def point(concurrency, context, rate):
        engine = {"median_tpot_ms": 1000 / rate, "total_input_tokens": 3000, "ttfts": [1.0]}
        return {"concurrency": concurrency, "context": context, "repeats": [{"engine": engine}]}

    points = [point(1, None, 55), point(8, None, 20), point(1, 8192, 30), point(1, 40000, 45)]
    return read({"plan": {"speed": speed}, "points": points})


def test_measured_rates_are_held_against_the_plans_range_at_that_context():
    found = [(one.what, one.place.context, one.low, one.verdict) for one in expectations(planned())]
    assert found == [
        ("decode", None, 50, "within"),
        ("decode", 8192, 40, "below"),
        ("prefill", 8192, 1000, "above"),
        ("decode", 40000, 30, "above"),
        ("prefill", 40000, 1000, "above"),
    ]
    assert expectations(planned())[0].share == pytest.approx(55 / 80)


def test_a_plan_that_says_nothing_expects_nothing():
    assert expectations(read({"plan": {"speed": None}, "points": KEPT["points"]})) == []
    assert [one.what for one in expectations(planned(prefill_tokens_per_s=None))] == ["decode"] * 3


@pytest.mark.parametrize(
    "rubbish",
    [
        {},
        {"points": None, "plan": [], "facts": "x"},
        {"points": ["x", {"repeats": [None, {"engine": {"median_tpot_ms": "fast", "ttfts": [None, "x"]}}]}]},
        {"points": [{"repeats": [{"engine": {"median_tpot_ms": float("nan"), "total_input_tokens": True}}]}]},
    ],
)
def test_what_a_host_keeps_is_hostile_until_typed(rubbish):
    run = read(rubbish)
    json.dumps(run.to_json())
    assert expectations(run) == []


def test_the_prompts_are_many_and_each_its_own():
    found = prompts()
    assert len(found) == len(set(found)) >= 16
    assert all(100 < len(one) < 3000 for one in found)
