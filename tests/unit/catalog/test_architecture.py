"""config.json read as it is published, and doubted where it cannot be true."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxwright import catalog
from boxwright.catalog.architecture import Architecture
from boxwright.catalog.model_config import UnreadableConfig, from_config

HYBRID = {
    "architectures": ["Qwen3_5ForConditionalGeneration"],
    "model_type": "qwen3_5",
    "vision_config": {"depth": 27},
    "tie_word_embeddings": False,
    "text_config": {
        "model_type": "qwen3_5_text",
        "num_hidden_layers": 64,
        "full_attention_interval": 4,
        "num_attention_heads": 24,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "hidden_size": 5120,
        "intermediate_size": 17408,
        "vocab_size": 248320,
        "attn_output_gate": True,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 48,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4,
        "mamba_ssm_dtype": "float32",
        "mtp_num_hidden_layers": 1,
        "max_position_embeddings": 262144,
    },
}
LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 30,
    "hidden_size": 576,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "intermediate_size": 1536,
    "vocab_size": 49152,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": True,
}


def test_a_hybrid_under_text_config_is_the_catalogs():
    assert from_config(HYBRID) == catalog.load().models["qwen3.8-27b"].architecture


def test_layer_types_count_before_the_interval():
    config = {
        **HYBRID,
        "text_config": {
            **HYBRID["text_config"],
            "num_hidden_layers": 4,
            "layer_types": ["linear_attention", "linear_attention", "linear_attention", "full_attention"],
        },
    }
    found = from_config(config)
    assert (found.attention.layers, found.linear.layers if found.linear else 0) == (1, 3)


def test_a_llama_with_its_head_size_derived():
    assert from_config(LLAMA) == catalog.load().models["smollm2-135m-instruct"].architecture


def test_a_mixture_of_experts():
    found = from_config({**LLAMA, "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768})
    assert found.experts
    assert (found.experts.count, found.experts.active, found.experts.intermediate) == (128, 8, 768)
    assert found.active_parameters < found.body_parameters


def test_a_model_of_sliding_windows_only():
    found = from_config({**LLAMA, "layer_types": ["sliding_attention"] * 30, "sliding_window": 4096})
    assert found.attention.window == 4096


@pytest.mark.parametrize(
    "change",
    [
        {"num_hidden_layers": None},
        {"hidden_size": "576"},
        {"vocab_size": -1},
        {"num_attention_heads": 0},
        {"num_hidden_layers": 1 << 40},
        {"max_position_embeddings": True},
        {"num_experts": 8, "num_experts_per_tok": "x"},
        {"num_experts": "many"},
    ],
)
def test_what_cannot_be_true_is_told(change):
    with pytest.raises(UnreadableConfig, match=r"config\.json says"):
        from_config({**LLAMA, **change})


KEYS = sorted(
    {*LLAMA, *HYBRID["text_config"], "num_experts", "num_experts_per_tok", "sliding_window", "layer_types"}
)


@given(
    st.dictionaries(
        st.sampled_from(KEYS),
        st.one_of(
            st.integers(),
            st.text(max_size=5),
            st.none(),
            st.booleans(),
            st.lists(st.sampled_from(["linear_attention", "x"])),
        ),
    )
)
def test_any_config_is_read_or_refused(change):
    try:
        found = from_config({**HYBRID["text_config"], **change})
    except UnreadableConfig:
        return
    assert isinstance(found, Architecture)
    assert found.parameters > 0
