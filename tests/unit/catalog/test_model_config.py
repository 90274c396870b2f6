"""config.json files as they are published: geometry, parameters, and what is no chat model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from boxwright.catalog.config_values import UnreadableConfig
from boxwright.catalog.model_config import code_classes, from_config
from boxwright.catalog.purpose import purpose

PUBLISHED = yaml.safe_load(Path(__file__).with_name("model_configs.yml").read_text())
#: Parameters are published rounded, and ours leave out norms, biases and convolutions.
TOLERANCE = 0.035


def at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = getattr(value, name)
    return value


def of(name: str) -> dict[str, Any]:
    config: dict[str, Any] = next(one["config"] for one in PUBLISHED if name in one["source"])
    return config


@pytest.mark.parametrize("case", [pytest.param(one, id=one["source"]) for one in PUBLISHED])
def test_a_published_config(case):
    found = from_config(case["config"])
    for path, value in case["expect"].items():
        wanted = pytest.approx(value, rel=TOLERANCE) if path.endswith("parameters") else value
        assert at(found, path) == wanted, path


@pytest.mark.parametrize("case", [pytest.param(one, id=one["source"]) for one in PUBLISHED])
def test_who_writes_text(case):
    kind = purpose(case["config"]).what
    assert (kind == "a draft model for another model") == ("DFlash2" in case["source"])
    assert kind is None or "DFlash2" in case["source"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("XLMRobertaModel", "without the part that writes text"),  # BAAI/bge-m3
        ("BertForSequenceClassification", "classifier"),  # cross-encoder/ms-marco-MiniLM-L6-v2
        ("BertForMaskedLM", "encoder"),  # google-bert/bert-base-uncased
        ("Qwen2ForRewardModel", "reward"),
        ("ColPaliForRetrieval", "embedding"),
        ("T5ForConditionalGeneration", "encoder-decoder"),
        ("WhisperForConditionalGeneration", "no chat model"),
        ("Qwen3_5MTP", "draft model"),
        ("EagleLlamaForCausalLM", "draft model"),
        ("LlamaForCausalLMEagle3", "draft model"),
        ("LlamaForCausalLM", None),
        ("GPT2LMHeadModel", None),
        ("MiniCPMV", None),
        ("NemotronH_Nano_VL_V2", None),
        ("Ovis2_5", None),
    ],
)
def test_what_a_class_is_for(name, kind):
    found = purpose({"architectures": [name]}).what
    assert (kind in found) if kind and found else found is kind


def test_a_config_may_say_that_it_is_an_encoder_decoder():
    assert purpose({"architectures": ["NewForConditionalGeneration"], "is_encoder_decoder": True}).what
    assert purpose({}).what is None
    assert purpose({"architectures": "LlamaForCausalLM"}).what is None


def test_code_that_comes_with_a_repository_is_seen():
    assert code_classes(of("InternVL")) == ("AutoConfig",)
    assert code_classes(of("Llama-3.1")) == ()
    assert code_classes({"auto_map": ["AutoConfig"]}) == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"layer_types": ["mamba"] * 32}, "no layer of attention"),
        ({"intermediate_size": []}, "intermediate_size"),
        ({"kv_lora_rank": 512}, "qk_nope_head_dim"),
        ({"kv_lora_rank": "x", "qk_nope_head_dim": 1, "v_head_dim": 1}, "kv_lora_rank"),
    ],
)
def test_what_cannot_be_planned_is_told(change, words):
    with pytest.raises(UnreadableConfig, match=words):
        from_config({**of("Llama-3.1"), **change})


@pytest.mark.parametrize("factor", [float("inf"), float("nan"), -1, 1e300, "8", None, True])
def test_a_stretch_that_cannot_be_true_stretches_nothing(factor):
    config = {**of("Llama-3.1"), "rope_scaling": {"rope_type": "linear", "factor": factor}}
    assert from_config(config).context == 131072


def test_newer_configs_have_a_rope_for_each_kind_of_layer():
    rope = {
        "full_attention": {"rope_type": "yarn", "factor": 4.0},
        "sliding_attention": {"rope_type": "default"},
    }
    found = from_config({**of("Llama-3.1"), "rope_scaling": None, "rope_parameters": rope})
    assert (found.scaled, found.context) == (True, 131072)


def test_a_kind_of_layer_that_is_not_known_is_told():
    found = from_config({**of("Llama-3.1"), "layer_types": ["full_attention"] * 30 + ["conv", "x"]})
    assert (found.attention.layers, found.unknown_cache) == (30, "layers of the kind conv, x")


def test_a_hybrid_of_both_kinds_in_every_layer():
    # tiiuae/Falcon-H1: each layer has attention and a Mamba 2 mixer side by side.
    mamba = {
        "mamba_n_heads": 24,
        "mamba_d_head": 64,
        "mamba_d_state": 128,
        "mamba_n_groups": 1,
        "mamba_d_conv": 4,
    }
    found = from_config({**of("Llama-3.1"), **mamba, "layers_block_type": ["hybrid"] * 32})
    assert found.linear
    assert (found.layers, found.attention.layers, found.linear.layers) == (32, 32, 32)
