"""Weights, cache and state beside those of an independent library, every difference explained to the byte."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from boxwright import catalog
from boxwright.planner.kv_pool import KV_BYTES, PoolSpec, layout

SAID = yaml.safe_load((Path(__file__).parent / "vramscout.yml").read_text())
MODELS = {name: catalog.load().models[name].architecture for name in SAID["models"]}
GIB = 1 << 30


def test_the_cache_of_a_dense_model_is_the_same():
    architecture = MODELS["qwen3-8b"]
    for kv, gib in SAID["models"]["qwen3-8b"]["cache_gib"].items():
        pool = layout(PoolSpec(architecture, KV_BYTES[kv]))
        assert pool.blocks(SAID["context"]) * pool.block_bytes == gib * GIB


def test_the_cache_of_a_hybrid_differs_by_whole_blocks():
    """It counts tokens; the engine gives out blocks of 784 (1,568 with 8 bits), and states from one pool."""
    architecture = MODELS["qwen3.8-27b"]
    for kv, gib in SAID["models"]["qwen3.8-27b"]["cache_gib"].items():
        pool = layout(PoolSpec(architecture, KV_BYTES[kv], prefix_caching=False))
        whole = -(-SAID["context"] // pool.block_tokens)
        assert whole == pool.blocks(SAID["context"]) - pool.state_blocks
        assert gib * GIB * whole * pool.block_tokens == whole * pool.block_bytes * SAID["context"]


def test_the_state_differs_by_one_step_of_the_convolution():
    """It keeps as many steps as the kernel has, the engine one less."""
    linear = MODELS["qwen3.8-27b"].linear
    width = 2 * linear.key_heads * linear.key_head_dim + linear.value_heads * linear.value_head_dim
    ours = layout(PoolSpec(MODELS["qwen3.8-27b"], KV_BYTES["bf16"])).state_bytes
    assert SAID["models"]["qwen3.8-27b"]["state_bytes"] - ours == linear.layers * width * 2


def test_the_weights_of_a_dense_model_differ_by_the_norms():
    """Ours are what quantizers work on and the vocabulary; it counts each layer's two norms and the last."""
    architecture = MODELS["qwen3-8b"]
    norms = (2 * architecture.layers + 1) * architecture.hidden
    assert SAID["models"]["qwen3-8b"]["parameters"] - architecture.parameters == norms


def test_the_weights_of_a_hybrid_differ_by_what_linear_layers_are():
    """Without files it takes all 64 layers for plain attention: no gate, no Gated DeltaNet, no drafts."""
    architecture = MODELS["qwen3.8-27b"]
    attention = architecture.attention
    norms = (2 * architecture.layers + 1) * architecture.hidden
    heads = 2 * attention.heads + 2 * attention.kv_heads
    plain = architecture.layers * architecture.hidden * attention.head_dim * heads
    linear = architecture.linear
    own = attention.layers * architecture.hidden * attention.head_dim * (heads + attention.heads)
    keys, values = linear.key_heads * linear.key_head_dim, linear.value_heads * linear.value_head_dim
    own += linear.layers * architecture.hidden * (2 * keys + 3 * values + 2 * linear.value_heads)
    said = SAID["models"]["qwen3.8-27b"]["parameters"]
    assert architecture.parameters - said == own - plain - norms


def config(architecture):
    """The config.json of a geometry."""
    attention, linear = architecture.attention, architecture.linear
    values = {
        "architectures": [architecture.name],
        "model_type": architecture.model_type,
        "dtype": "bfloat16",
        "num_hidden_layers": architecture.layers,
        "hidden_size": architecture.hidden,
        "intermediate_size": architecture.intermediate,
        "vocab_size": architecture.vocab,
        "num_attention_heads": attention.heads,
        "num_key_value_heads": attention.kv_heads,
        "head_dim": attention.head_dim,
        "max_position_embeddings": architecture.context,
        "tie_word_embeddings": architecture.tied,
    }
    if linear is None:
        return values
    kinds = ["linear_attention"] * 3 + ["full_attention"]
    values |= {
        "model_type": "qwen3_5_text",
        "full_attention_interval": 4,
        "layer_types": kinds * attention.layers,
        "attn_output_gate": True,
        "linear_num_key_heads": linear.key_heads,
        "linear_num_value_heads": linear.value_heads,
        "linear_key_head_dim": linear.key_head_dim,
        "linear_value_head_dim": linear.value_head_dim,
        "linear_conv_kernel_dim": linear.conv_kernel,
        "mamba_ssm_dtype": "float32",
    }
    whole = {key: values[key] for key in ("architectures", "dtype", "tie_word_embeddings")}
    return whole | {"model_type": "qwen3_5", "vision_config": {"depth": 27}, "text_config": values}


@pytest.mark.skipif(importlib.util.find_spec("vramscout") is None, reason="vramscout is not installed")
@pytest.mark.parametrize("name", sorted(MODELS))
def test_the_record_is_what_vramscout_says(name, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(config(MODELS[name])))
    for kv, gib in SAID["models"][name]["cache_gib"].items():
        command = [sys.executable, "-m", "vramscout.cli", str(tmp_path), "--context", str(SAID["context"])]
        command += ["--kv-dtype", kv, "--vram-gib", "80", "--calibration", "none", "--json"]
        answer = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)
        cache = sum(size for part, size in answer["parts_gib"].items() if "KV" in part)
        assert cache == gib
        assert answer["profile"]["num_params"] == SAID["models"][name]["parameters"]
        recurrent = answer["profile"]["metadata"].get("recurrent_bytes", 0)
        assert recurrent == SAID["models"][name]["state_bytes"]
