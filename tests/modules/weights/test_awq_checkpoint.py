"""What AutoAWQ can quantize, how large it gets, and what a finished checkpoint must hold."""

import pytest
import yaml
from ansible.module_utils import awq_checkpoint
from ansible.module_utils.checkpoint import Tensor

from ..conftest import ROOT

VARIABLES = yaml.safe_load((ROOT / "roles/model_quantize/vars/main.yml").read_text())
KNOWN = VARIABLES["_model_quantize_architectures"]["autoawq"]
SMOLLM2 = {
    "model_type": "llama",
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_attention_heads": 9,
    "head_dim": 64,
}
QUANTIZATION = {"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": True, "version": "gemm"}


@pytest.mark.parametrize(
    ("config", "group_size", "words"),
    [
        (SMOLLM2, 64, None),
        (SMOLLM2, 128, r"hidden_size \(576\).*Set group_size: 64"),
        ({"model_type": "qwen3", "hidden_size": 4096, "intermediate_size": 12288}, 128, None),
        ({"model_type": "qwen3", "hidden_size": 100}, 64, "No usual group size fits"),
        (
            {"model_type": "qwen3_5", "hidden_size": 5120},
            128,
            "does not know the architecture qwen3_5.*llm-compressor",
        ),
        ({"model_type": "qwen3_next", "hidden_size": 5120}, 128, "does not know the architecture qwen3_next"),
        ({"hidden_size": 5120}, 128, "leaves unnamed"),
        ({"model_type": "qwen3", "quantization_config": {"quant_method": "fp8"}}, 128, r"already \(fp8\)"),
        (
            {"model_type": "qwen2_5_vl", "text_config": {"hidden_size": 96}},
            64,
            r"hidden_size \(96\).*group_size: 32",
        ),
        (
            {"model_type": "qwen3", "hidden_size": 256, "num_attention_heads": 3, "head_dim": 32},
            64,
            r"num_attention_heads \* head_dim \(96\)",
        ),
    ],
)
def test_objection(config, group_size, words):
    told = awq_checkpoint.objection(
        config, awq_checkpoint.widths(config), group_size, KNOWN, "autoawq==0.2.9"
    )
    if words is None:
        assert told is None
    else:
        import re

        assert re.search(words, told), told


def source():
    return {
        "model.embed_tokens.weight": Tensor("BF16", (1000, 128), 256_000),
        "model.layers.0.self_attn.q_proj.weight": Tensor("BF16", (128, 128), 32_768),
        "model.layers.0.input_layernorm.weight": Tensor("BF16", (128,), 256),
        "model.layers.1.mlp.up_proj.weight": Tensor("BF16", (256, 128), 65_536),
        "lm_head.weight": Tensor("BF16", (1000, 128), 256_000),
    }


def result():
    made = {
        name: tensor
        for name, tensor in source().items()
        if not name.endswith(("q_proj.weight", "up_proj.weight"))
    }
    for stem, outputs in (("model.layers.0.self_attn.q_proj.", 128), ("model.layers.1.mlp.up_proj.", 256)):
        made[stem + "qweight"] = Tensor("I32", (128, outputs // 8), 0)
        made[stem + "qzeros"] = Tensor("I32", (2, outputs // 8), 0)
        made[stem + "scales"] = Tensor("F16", (2, outputs), 0)
    return made


def test_estimate():
    estimate = awq_checkpoint.estimate(source(), bits=4, group_size=64)
    assert estimate.loaded == 256_000 + 32_768 + 256 + 65_536 + 256_000
    assert estimate.layer == 65_536
    q_proj, up_proj = 128 * 128, 256 * 128
    packed = sum(n // 2 + n // 64 * 2 + n // 64 // 2 for n in (q_proj, up_proj))
    assert estimate.result == 256_000 * 2 + 256 + packed


def test_right():
    assert awq_checkpoint.flaws(source(), result(), {"quantization_config": QUANTIZATION}, 4, 64) == []


def without(name):
    return {key: tensor for key, tensor in result().items() if key != name}


@pytest.mark.parametrize(
    ("made", "config", "words"),
    [
        (result(), {}, "config.json says None"),
        (result(), {"quantization_config": dict(QUANTIZATION, group_size=128)}, "config.json says"),
        (without("lm_head.weight"), {"quantization_config": QUANTIZATION}, "lm_head.weight is missing"),
        (
            without("model.layers.0.input_layernorm.weight"),
            {"quantization_config": QUANTIZATION},
            "layernorm.weight is",
        ),
        (
            without("model.layers.1.mlp.up_proj.scales"),
            {"quantization_config": QUANTIZATION},
            "up_proj.scales is missing",
        ),
        (
            without("model.layers.1.mlp.up_proj.qweight"),
            {"quantization_config": QUANTIZATION},
            "up_proj.weight is missing",
        ),
        (
            dict(result(), **{"model.layers.0.self_attn.q_proj.qweight": Tensor("I32", (128, 32), 0)}),
            {"quantization_config": QUANTIZATION},
            r"q_proj.qweight is I32 \(128, 32\) instead",
        ),
        (source(), {"quantization_config": QUANTIZATION}, "no layer was quantized"),
    ],
)
def test_wrong(made, config, words):
    import re

    assert re.search(words, "; ".join(awq_checkpoint.flaws(source(), made, config, 4, 64)))


def test_tied_head_may_be_left_out():
    config = {"quantization_config": QUANTIZATION, "tie_word_embeddings": True}
    assert awq_checkpoint.flaws(source(), without("lm_head.weight"), config, 4, 64) == []
