"""A deployment as options: what differs, what is changed, and back as an inventory says it."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from boxwright.spec.flat import changed, differing, flat, varied, written
from boxwright.spec.validate import judged_box

DECLARED = {
    "name": "qwen",
    "model": "qwen3.8-27b-int4",
    "image": "vllm/vllm-openai:v0.29.0",
    "concurrency": 8,
    "speculative": {"method": "mtp", "tokens": 2},
    "api_key": "not-to-be-seen",
    "extra_args": {"enforce_eager": True, "--compilation-config.mode": 3},
    "env": {"NCCL_DEBUG": "INFO"},
}


def test_every_extra_argument_and_variable_is_an_option_of_its_own():
    assert flat(DECLARED) == {
        "model": "qwen3.8-27b-int4",
        "image": "vllm/vllm-openai:v0.29.0",
        "concurrency": 8,
        "speculative": {"method": "mtp", "tokens": 2},
        "extra_args.enforce-eager": True,
        "extra_args.compilation-config.mode": 3,
        "env.NCCL_DEBUG": "INFO",
    }


def test_no_drafts_are_no_option_however_they_are_said():
    assert flat({"speculative": {"method": "none"}}) == flat({"speculative": {}}) == flat({}) == {}


def test_differences_by_option_and_spelling_is_none():
    other = {**DECLARED, "concurrency": 16, "extra_args": {"enforce-eager": True}, "name": "other"}
    assert differing(DECLARED, other) == {
        "concurrency": (8, 16),
        "extra_args.compilation-config.mode": (3, None),
    }


def test_changes_replace_one_spelling_by_another_and_take_out():
    found = changed(
        DECLARED,
        {"extra_args.enforce-eager": None, "env.NCCL_DEBUG": "WARN", "speculative": None, "context": 1024},
    )
    assert found["extra_args"] == {"--compilation-config.mode": 3}
    assert found["env"] == {"NCCL_DEBUG": "WARN"}
    assert "speculative" not in found
    assert found["context"] == 1024
    assert DECLARED["extra_args"]["enforce_eager"] is True


@pytest.mark.parametrize("option", ["nonsense", "name", "port", "extra_args", "env", "concurrency.x", ""])
def test_what_is_no_option_is_refused(option):
    with pytest.raises(ValueError, match="no deployment has an option"):
        changed(DECLARED, {option: 1})


def test_limits_of_the_cards_are_the_boxes():
    variables = {"box_deployments": [DECLARED], "gpu_tuning_power_limit_w": 400}
    found = varied(
        variables,
        "qwen",
        {"gpu_tuning_power_limit_w": None, "gpu_tuning_max_clock_mhz": 2100, "concurrency": 4},
    )
    assert "gpu_tuning_power_limit_w" not in found
    assert found["gpu_tuning_max_clock_mhz"] == 2100
    assert found["box_deployments"][0]["concurrency"] == 4
    with pytest.raises(LookupError):
        varied(variables, "other", {})


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "concurrency": st.integers(1, 64),
            "kv_cache": st.sampled_from(["auto", "fp8"]),
            "context": st.sampled_from(["auto", 4096]),
            "gpus": st.just([0, 1]),
            "speculative": st.sampled_from([{"method": "none"}, {"method": "ngram", "tokens": 4}]),
            "extra_args": st.just({"enforce-eager": True}),
            "env": st.just({"A": "1"}),
        },
    )
)
def test_written_as_an_inventory_says_it_and_read_again_it_is_the_same(more):
    declared = {**DECLARED, **more, "extra_args": more.get("extra_args", {})}
    (first,) = judged_box("b", {"box_deployments": [declared]}).deployments
    said = written(first)
    assert "api_key" not in said
    assert "not-to-be-seen" not in str(said)
    (again,) = judged_box("b", {"box_deployments": [yaml.safe_load(yaml.safe_dump(said))]}).deployments
    assert written(again) == said
    assert differing(said, written(again)) == {}
