"""Every common form of quantization_config, as published checkpoints have it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxwright.catalog.quantization import Quantization, of_config


def group(bits, size=None, kind="int"):
    return {"targets": ["Linear"], "weights": {"num_bits": bits, "group_size": size, "type": kind}}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        # Qwen/Qwen3-8B-AWQ
        (
            {"bits": 4, "group_size": 128, "quant_method": "awq", "version": "gemm", "zero_point": True},
            Quantization("awq", 4, 128),
        ),
        # Qwen/Qwen3-30B-A3B-GPTQ-Int4
        (
            {"bits": 4, "desc_act": False, "group_size": 128, "quant_method": "gptq", "sym": True},
            Quantization("gptq", 4, 128),
        ),
        ({"bits": 8, "group_size": -1, "quant_method": "gptq"}, Quantization("gptq", 8)),
        # RedHatAI's INT4: pack-quantized
        (
            {
                "quant_method": "compressed-tensors",
                "format": "pack-quantized",
                "config_groups": {"g": group(4, 128)},
            },
            Quantization("compressed-tensors", 4, 128),
        ),
        # RedHatAI's FP8-dynamic
        (
            {
                "quant_method": "compressed-tensors",
                "format": "float-quantized",
                "config_groups": {"group_0": group(8, None, "float")},
            },
            Quantization("compressed-tensors", 8),
        ),
        # RedHatAI's NVFP4
        (
            {
                "quant_method": "compressed-tensors",
                "format": "nvfp4-pack-quantized",
                "config_groups": {"group_0": group(4, 16, "float")},
            },
            Quantization("compressed-tensors", 4, 16),
        ),
        # Mixed: attention at 8 bits, the rest at 4
        (
            {
                "quant_method": "compressed-tensors",
                "format": "mixed-precision",
                "config_groups": {"group_0": group(8), "group_1": group(4, 128)},
            },
            Quantization("compressed-tensors", 4, 128, mixed=True),
        ),
        # Qwen/Qwen3.8-27B-FP8 and deepseek-ai/DeepSeek-V3: blocks
        (
            {
                "activation_scheme": "dynamic",
                "fmt": "e4m3",
                "quant_method": "fp8",
                "weight_block_size": [128, 128],
            },
            Quantization("fp8", 8, block=(128, 128)),
        ),
        # unsloth's bnb-4bit
        ({"load_in_4bit": True, "quant_method": "bitsandbytes"}, Quantization("bitsandbytes", 4)),
        ({"load_in_4bit": False, "load_in_8bit": True}, Quantization("bitsandbytes", 8)),
        # nvidia's ModelOpt checkpoints, in config.json and as hf_quant_config.json has it
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, Quantization("modelopt", 8)),
        (
            {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16},
            Quantization("modelopt", 4, 16),
        ),
        (
            {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4", "group_size": 16}},
            Quantization("modelopt_fp4", 4, 16),
        ),
        (
            {
                "producer": {"name": "modelopt"},
                "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"},
            },
            Quantization("modelopt", 8),
        ),
        (
            {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"},
            Quantization("modelopt", 8, mixed=True),
        ),
        # openai/gpt-oss-20b
        ({"quant_method": "mxfp4", "modules_to_not_convert": []}, Quantization("mxfp4", 4, 32)),
        # Intel's AutoRound
        (
            {
                "quant_method": "auto-round",
                "bits": 4,
                "group_size": 128,
                "packing_format": "auto_round:auto_gptq",
            },
            Quantization("auto-round", 4, 128),
        ),
        ({"w_bit": 4, "q_group_size": 64, "quant_method": "awq"}, Quantization("awq", 4, 64)),
        ({"quant_method": "compressed_tensors"}, Quantization("compressed-tensors", 4)),
        ({}, Quantization("unknown", 4)),
        (None, Quantization(None, 16)),
        ("awq", Quantization(None, 16)),
    ],
)
def test_a_published_form(said, expected):
    assert of_config({"quantization_config": said}) == expected
    assert of_config({"text_config": {"quantization_config": said}}) == expected


def test_the_older_name_of_compressed_tensors():
    assert of_config({"compression_config": {"config_groups": {"g": group(4, 128)}}}).bits == 4


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)
KEYS = (
    "bits",
    "group_size",
    "quant_method",
    "quant_algo",
    "format",
    "config_groups",
    "quantization",
    "load_in_8bit",
)


@given(st.dictionaries(st.sampled_from(KEYS), VALUES))
def test_anything_is_read(said):
    found = of_config({"quantization_config": said})
    assert found.bits > 0
