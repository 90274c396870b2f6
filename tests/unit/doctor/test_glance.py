"""How a box fares at a moment, out of what was read there."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxwright.doctor.glance import glance

METRICS = """vllm:num_requests_running{engine="0"} 2.0
vllm:num_requests_waiting{engine="0"} 1.0
vllm:kv_cache_usage_perc{engine="0"} 0.25
vllm:spec_decode_num_draft_tokens_total 400
vllm:spec_decode_num_accepted_tokens_total 300
vllm:generation_tokens_total{engine="0"} %d
vllm:generation_tokens_total{engine="1"} 10
"""
RAW = {
    "now": 1_764_486_120.0,  # 2025-11-30T07:02:00Z
    "cards": {
        "outcome": "ok",
        "lost": [],
        "rows": [
            {
                "index": "0",
                "name": "NVIDIA GeForce RTX 5090",
                "driver_version": "580.105.08",
                "temperature.gpu": "61",
                "power.draw": "431.55 W",
                "power.limit": "575.00 W",
                "clocks.current.graphics": "2100 MHz",
                "memory.used": "29800 MiB",
                "memory.total": "32607 MiB",
                "utilization.gpu": "97 %",
            },
            {"index": "1", "name": None, "temperature.gpu": None, "power.draw": "[N/A]"},
        ],
    },
    "receipts": {"engine": {"differs": [], "drift": []}},
    "deployments": [
        {
            "name": "qwen",
            "release": "0123456789ab",
            "plan": {"image": "vllm/vllm-openai:v0.32.0", "context": 262144, "gpus": [0]},
            "model_directory": "/var/lib/boxwright/models/RedHatAI--Qwen3.8-27B-INT4/" + "a" * 40,
            "unit": {"load": "loaded", "active": "active", "sub": "running", "running": True, "restarts": 0},
            "container": {"status": "running"},
            "started": "2025-11-30T07:00:00.123456789Z",
            "health": 200,
            "metrics_before": METRICS % 1000,
            "metrics": METRICS % 1150,
            "interval_s": 1.5,
        }
    ],
}


@pytest.fixture
def raw():
    return copy.deepcopy(RAW)


def test_a_box_that_serves(raw):
    seen = glance(raw)
    assert seen.cards_problem is None
    card, silent = seen.cards
    assert (card.temperature, card.power, card.power_limit, card.clock) == (61, 431.55, 575.0, 2100)
    assert (card.memory_used, card.memory_total, card.utilization) == (29800, 32607, 97)
    assert (silent.index, silent.power, silent.temperature) == (1, None, None)
    [one] = seen.deployments
    assert (one.state, one.running, one.waiting, one.kv_usage, one.acceptance) == (
        "serving",
        2,
        1,
        0.25,
        0.75,
    )
    assert one.tokens_per_s == pytest.approx(100)
    assert one.model == "RedHatAI/Qwen3.8-27B-INT4"
    assert one.uptime_s == pytest.approx(120)
    assert seen.drifted == ()


@pytest.mark.parametrize("serves", ["embeddings", "reranking"])
def test_what_serves_no_text_is_told_by_the_tokens_that_it_reads(raw, serves):
    one = raw["deployments"][0]
    one["plan"] = {**one["plan"], "serves": serves}
    one["metrics_before"] += "vllm:prompt_tokens_total 100\n"
    one["metrics"] += "vllm:prompt_tokens_total 700\n"
    one["interval_s"] = 2.0
    found = glance(raw).deployments[0]
    assert (found.serves, found.tokens_per_s) == (serves, 300.0)
    one["plan"] = {}
    assert glance(raw).deployments[0].serves == "text"


def test_counters_that_began_anew_give_no_rate(raw):
    raw["deployments"][0]["metrics_before"] = METRICS % 99999
    assert glance(raw).deployments[0].tokens_per_s is None


@pytest.mark.parametrize(
    ("unit", "state"),
    [
        ({"load": "loaded", "active": "active", "sub": "running", "running": True}, "loading"),
        ({"load": "loaded", "active": "failed", "sub": "failed", "restarts": 5}, "failed"),
        ({"load": "loaded", "active": "inactive", "sub": "dead", "restarts": 0}, "stopped"),
        ({"load": "not-found"}, "stopped"),
    ],
)
def test_a_deployment_that_does_not_serve(raw, unit, state):
    raw["deployments"][0].update(unit=unit, health=None, metrics="")
    one = glance(raw).deployments[0]
    assert one.state == state
    assert one.tokens_per_s is None
    assert one.uptime_s is None


def test_what_drifted_is_told_and_what_others_did_beside_it_is_not(raw):
    raw["receipts"] = {
        "nvidia_driver": {
            "differs": ["code", "nvidia_driver_branch"],
            "drift": [
                {"kind": "beside", "subject": "/etc/apt/sources.list", "was": "x", "now": "edited"},
                {
                    "kind": "file",
                    "subject": "/etc/modprobe.d/boxwright-nvidia.conf",
                    "was": "x",
                    "now": "gone",
                },
            ],
        }
    }
    assert glance(raw).drifted == (
        "/etc/modprobe.d/boxwright-nvidia.conf gone",
        "nvidia_driver_branch is declared otherwise",
    )


def test_a_box_without_receipts_is_not_called_as_declared(raw):
    raw["receipts"] = {}
    assert glance(raw).drifted is None


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(RAW)), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(sorted(RAW)), JUNK))
def test_nothing_that_a_host_sends_makes_it_raise(junk):
    glance({**RAW, **junk}).to_json()


@given(st.dictionaries(st.sampled_from(sorted(RAW["deployments"][0])), JUNK))
def test_nor_anything_about_a_deployment(junk):
    glance({**RAW, "deployments": [{**RAW["deployments"][0], **junk}]}).to_json()
