"""How large what llm-compressor makes gets, and what a finished checkpoint must hold."""

import re

import pytest
import yaml
from ansible.module_utils import awq_checkpoint, compressed_checkpoint
from ansible.module_utils.checkpoint import Tensor

from ..conftest import ROOT

VARIABLES = yaml.safe_load((ROOT / "roles/model_quantize/vars/main.yml").read_text())
KNOWN = VARIABLES["_model_quantize_architectures"]["llmcompressor"]
HYBRID = {
    "model_type": "qwen3_5",
    "text_config": {
        "hidden_size": 256,
        "intermediate_size": 512,
        "linear_num_value_heads": 3,
        "linear_value_head_dim": 32,
    },
}
WEIGHTS = {"num_bits": 4, "group_size": 64, "strategy": "group", "symmetric": True, "type": "int"}
KEPT = ["lm_head", "model.layers.0.linear_attn.in_proj_a", "re:^mtp.*", "model.visual.blocks.0.mlp.fc1"]
QUANTIZATION = {
    "quant_method": "compressed-tensors",
    "format": "pack-quantized",
    "config_groups": {"group_0": {"targets": ["Linear"], "weights": WEIGHTS}},
    "ignore": KEPT,
}


@pytest.mark.parametrize(
    ("config", "group_size", "words"),
    [
        (HYBRID, 32, None),
        (HYBRID, 64, r"linear_num_value_heads \* linear_value_head_dim \(96\).*Set group_size: 32"),
        ({"model_type": "qwen3", "hidden_size": 4096}, 128, None),
        ({"model_type": "qwen3_5_moe"}, 64, "does not know the architecture qwen3_5_moe"),
    ],
)
def test_objection(config, group_size, words):
    sides = compressed_checkpoint.widths(config)
    told = awq_checkpoint.objection(config, sides, group_size, KNOWN, "llmcompressor==0.14.0.1")
    assert told is None if words is None else re.search(words, told), told
    assert "method: auto" not in str(told)


def source():
    return {
        "model.embed_tokens.weight": Tensor("BF16", (1000, 128), 256_000),
        "model.layers.0.self_attn.q_proj.weight": Tensor("BF16", (128, 128), 32_768),
        "model.layers.0.linear_attn.in_proj_a.weight": Tensor("BF16", (4, 128), 1024),
        "model.layers.0.linear_attn.conv1d.weight": Tensor("BF16", (512, 1, 4), 4096),
        "model.layers.0.input_layernorm.weight": Tensor("BF16", (128,), 256),
        "model.layers.1.mlp.up_proj.weight": Tensor("BF16", (256, 128), 65_536),
        "model.visual.blocks.0.mlp.fc1.weight": Tensor("BF16", (64, 64), 8192),
        "mtp.layers.0.mlp.up_proj.weight": Tensor("BF16", (256, 128), 65_536),
        "lm_head.weight": Tensor("BF16", (1000, 128), 256_000),
    }


def result():
    made = {
        name: tensor
        for name, tensor in source().items()
        if not name.startswith("model.") or not name.endswith(("q_proj.weight", "up_proj.weight"))
    }
    for stem, outputs in (("model.layers.0.self_attn.q_proj.", 128), ("model.layers.1.mlp.up_proj.", 256)):
        made[stem + "weight_packed"] = Tensor("I32", (outputs, 16), 0)
        made[stem + "weight_scale"] = Tensor("BF16", (outputs, 2), 0)
        made[stem + "weight_shape"] = Tensor("I64", (2,), 16)
    return made


def without(name):
    return {key: tensor for key, tensor in result().items() if key != name}


def config(**changes):
    return {"quantization_config": dict(QUANTIZATION, **changes)}


def test_estimate():
    estimate = compressed_checkpoint.estimate(source(), bits=4, group_size=64)
    assert estimate.loaded == sum(tensor.size for tensor in source().values())
    q_proj, up_proj = 128 * 128, 256 * 128
    packed = sum(n // 2 + n // 64 * 2 + 16 for n in (q_proj, up_proj))
    assert estimate.result == estimate.loaded - 2 * (q_proj + up_proj) + packed


def test_right():
    assert compressed_checkpoint.flaws(source(), result(), config(), 4, 64) == []


@pytest.mark.parametrize(
    ("made", "said", "words"),
    [
        (result(), {}, "config.json says None where an engine needs"),
        (result(), config(format="float-quantized"), "an engine needs compressed-tensors, pack-quantized"),
        (
            result(),
            config(config_groups={"group_0": {"weights": dict(WEIGHTS, group_size=128)}}),
            "config.json says",
        ),
        (
            result(),
            config(config_groups={"a": {"weights": WEIGHTS}, "b": {"weights": WEIGHTS}}),
            "config.json says",
        ),
        (without("mtp.layers.0.mlp.up_proj.weight"), config(), "mtp.layers.0.mlp.up_proj.weight is missing"),
        (without("lm_head.weight"), config(), "lm_head.weight is missing"),
        (without("model.layers.1.mlp.up_proj.weight_packed"), config(), "up_proj.weight is missing"),
        (without("model.layers.1.mlp.up_proj.weight_scale"), config(), "up_proj.weight_scale is missing"),
        (without("model.layers.1.mlp.up_proj.weight_shape"), config(), "up_proj.weight_shape is missing"),
        (
            dict(result(), **{"model.layers.0.self_attn.q_proj.weight_packed": Tensor("I32", (128, 32), 0)}),
            config(),
            r"q_proj.weight_packed is I32 \(128, 32\) instead of I32 \(128, 16\)",
        ),
        (
            result(),
            config(ignore=["lm_head", "re:^mtp.*", "re:.*visual.*"]),
            "in_proj_a.weight has 16 bits, and config.json does not say so",
        ),
        (
            result(),
            config(ignore=[*KEPT, "re:.*q_proj"]),
            "q_proj.weight is made of integers, and config.json says that it has 16 bits",
        ),
        (source(), config(ignore=["re:.*"]), "no layer was quantized"),
    ],
)
def test_wrong(made, said, words):
    assert re.search(words, "; ".join(compressed_checkpoint.flaws(source(), made, said, 4, 64)))


def test_tied_head_may_be_left_out():
    said = dict(config(), tie_word_embeddings=True)
    assert compressed_checkpoint.flaws(source(), without("lm_head.weight"), said, 4, 64) == []


@pytest.mark.parametrize(
    ("module", "kept"),
    [
        ("lm_head", True),
        ("model.language_model.layers.3.self_attn.q_proj", False),
        ("model.layers.0.linear_attn.in_proj_b", True),
        ("model.layers.0.linear_attn.in_proj_ba", True),
        ("model.layers.0.linear_attn.in_proj_qkv", False),
        ("model.visual.blocks.0.attn.qkv", True),
        ("visual.blocks.0.attn.qkv", True),
        ("model.layers.0.mlp.gate", True),
        ("model.layers.0.mlp.gate_proj", False),
        ("mtp.layers.0.mlp.up_proj", True),
        ("model.supervisual.layers.0.up_proj", False),
    ],
)
def test_what_keeps_its_16_bits(module, kept):
    assert compressed_checkpoint.named(module, compressed_checkpoint.KEPT) is kept
