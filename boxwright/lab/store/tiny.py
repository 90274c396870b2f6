"""Small models with random weights: a plain Qwen3, a hybrid of the Qwen3.5 family with its MTP head, and a
DFlash2 draft model for the latter.

They have the layout of the real ones (names of tensors, keys of the configuration, vision part, chat
template) and load in seconds. Whatever they are asked, they say ANSWER: embeddings and output are made so
that each token calls for the next, far above the noise that the random layers add. That gives a gate
something to expect, and the MTP head, which sees the same embeddings, drafts that are accepted. Made from
seeded random bytes alone: the same on every machine for ever, so that their commits on the lab's hub are
stable.
"""

from __future__ import annotations

import json
from pathlib import Path

from boxwright.lab.store.safetensors import Weight, write
from boxwright.lab.store.tiny_weights import (
    ANSWER,
    CONTEXT,
    FFN,
    HEAD_DIM,
    HEADS,
    HIDDEN,
    KV_HEADS,
    ONE,
    VOCABULARY,
    ZERO,
    attention,
    constant,
    ends,
    linear_attention,
    mlp,
    noise,
    vision,
)
from boxwright.lab.store.tokenizer import Tokenizer

SPECIAL = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
WORDS = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")
CHAT_TEMPLATE = """\
{%- if tools %}{{- '<|im_start|>system\\n' }}
{%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{%- endif %}
{{- '# Tools\\n\\n<tools>\\n' }}
{%- for tool in tools %}{{- tool | tojson + '\\n' }}{%- endfor %}
{{- '</tools><|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}{%- if not (loop.first and message.role == 'system') %}
{{- '<|im_start|>' + message.role + '\\n' }}
{%- if message.content is string %}{{- message.content }}
{%- else %}{%- for part in message.content or [] %}
{%- if part.type == 'image' or 'image_url' in part %}{{- '<|vision_start|><|image_pad|><|vision_end|>' }}
{%- elif part.type == 'video' %}{{- '<|vision_start|><|video_pad|><|vision_end|>' }}
{%- else %}{{- part.text }}{%- endif %}{%- endfor %}{%- endif %}
{{- '<|im_end|>\\n' }}
{%- endif %}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}
{%- if enable_thinking is defined and enable_thinking is false %}
{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}
{%- endif %}
"""
README = f"""\
---
license: apache-2.0
---
Random weights of a few megabytes in the layout of a real model, made by the Boxwright lab for tests. Says
{ANSWER} to everything.
"""


def qwen3(folder: Path) -> None:
    """Write boxwright-lab/tiny-qwen3: two layers, plain attention."""
    ids = _tokenizer(folder)
    config = {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        **_text(2),
        "torch_dtype": "bfloat16",
        "rope_theta": 1000000,
        "rope_scaling": None,
        "use_sliding_window": False,
        "max_window_layers": 2,
        "sliding_window": None,
        "bos_token_id": ids["<|endoftext|>"],
        "eos_token_id": ids["<|im_end|>"],
        "pad_token_id": ids["<|endoftext|>"],
        "tie_word_embeddings": False,
    }
    _common(folder, config, ids)
    weights = [*ends("model", ids), constant("model.norm.weight", ONE, HIDDEN)]
    for layer in ("model.layers.0", "model.layers.1"):
        weights += [*attention(layer, ONE, gated=False), *mlp(layer, ONE)]
    write(folder / "model.safetensors", weights)


def qwen3_5(folder: Path) -> None:
    """Write boxwright-lab/tiny-qwen3.5-mtp: three linear layers, one of full attention, vision, MTP."""
    ids = _tokenizer(folder)
    rope = {
        "rope_type": "default",
        "rope_theta": 10000000,
        "partial_rotary_factor": 0.25,
        "mrope_interleaved": True,
        "mrope_section": [3, 3, 2],
    }
    text = {
        "model_type": "qwen3_5_text",
        **_text(4),
        "dtype": "bfloat16",
        "attn_output_gate": True,
        "full_attention_interval": 4,
        "layer_types": ["linear_attention"] * 3 + ["full_attention"],
        "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": HEAD_DIM,
        "linear_value_head_dim": HEAD_DIM,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "mamba_ssm_dtype": "float32",
        "mtp_num_hidden_layers": 1,
        "mtp_use_dedicated_embeddings": False,
        "partial_rotary_factor": 0.25,
        "rope_parameters": rope,
        "eos_token_id": ids["<|im_end|>"],
        "pad_token_id": ids["<|endoftext|>"],
    }
    vision_config = {
        "model_type": "qwen3_5",
        "depth": 1,
        "hidden_size": 64,
        "num_heads": 2,
        "intermediate_size": 128,
        "hidden_act": "gelu_pytorch_tanh",
        "in_channels": 3,
        "patch_size": 16,
        "temporal_patch_size": 2,
        "spatial_merge_size": 2,
        "num_position_embeddings": 64,
        "out_hidden_size": HIDDEN,
        "deepstack_visual_indexes": [],
    }
    config = {
        "architectures": ["Qwen3_5ForConditionalGeneration"],
        "model_type": "qwen3_5",
        "text_config": text,
        "vision_config": vision_config,
        "tie_word_embeddings": False,
        "image_token_id": ids["<|image_pad|>"],
        "video_token_id": ids["<|video_pad|>"],
        "vision_start_token_id": ids["<|vision_start|>"],
        "vision_end_token_id": ids["<|vision_end|>"],
    }
    _common(folder, config, ids)
    images = {
        "patch_size": 16,
        "temporal_patch_size": 2,
        "merge_size": 2,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
        "size": {"shortest_edge": 4096, "longest_edge": 65536},
        "processor_class": "Qwen3VLProcessor",
    }
    _write(
        folder / "preprocessor_config.json", {**images, "image_processor_type": "Qwen2VLImageProcessorFast"}
    )
    _write(
        folder / "video_preprocessor_config.json", {**images, "video_processor_type": "Qwen3VLVideoProcessor"}
    )
    # This family's norms multiply by 1 + weight, so that 0 is what 1 is elsewhere.
    base = "model.language_model"
    weights = [*ends(base, ids), constant(f"{base}.norm.weight", ZERO, HIDDEN)]
    for number in range(3):
        layer = f"{base}.layers.{number}"
        weights += [*linear_attention(layer), *mlp(layer, ZERO)]
    for layer in (f"{base}.layers.3", "mtp.layers.0"):
        weights += [*attention(layer, ZERO, gated=True), *mlp(layer, ZERO)]
    # Joins the embedding of the next token with the model's last state: it takes the former alone.
    rows = (ZERO * row + ONE + ZERO * (2 * HIDDEN - row - 1) for row in range(HIDDEN))
    weights.append(Weight("mtp.fc.weight", (HIDDEN, 2 * HIDDEN), b"".join(rows)))
    weights += [
        constant(f"mtp.{name}.weight", ZERO, HIDDEN)
        for name in ("norm", "pre_fc_norm_hidden", "pre_fc_norm_embedding")
    ]
    write(folder / "model.safetensors", [*weights, *vision("model.visual", 64, 128)])


def dflash2(folder: Path) -> None:
    """Write boxwright-lab/tiny-qwen3.5-dflash2: two layers with a window, which draft for tiny-qwen3.5-mtp.

    Its tensors are those of vllm model_executor/models/qwen3_dflash2.py; its drafts are noise.
    """
    layers, taps, group, rank = 2, 2, 16, 32
    own = {
        "block_size": 8,
        "mask_token_id": 0,
        "target_layer_ids": [0, 2],
        "conv_kernel_size": taps,
        "conv_group_size": group,
        "selector_rank": rank,
        "selector_top_k": 4,
    }
    config = {
        "architectures": ["DFlash2DraftModel"],
        "model_type": "qwen3",
        **_text(layers),
        "dtype": "bfloat16",
        "rope_theta": 10000000,
        "sliding_window": 2048,
        "is_causal": False,
        "layer_types": ["sliding_attention"] * layers,
        "tie_word_embeddings": False,
        "dflash_config": own,
    }
    _write(folder / "config.json", config)
    (folder / "README.md").write_text(README, encoding="utf-8")
    weights = [
        noise("fc.weight", HIDDEN, 2 * HIDDEN),
        constant("hidden_norm.weight", ONE, HIDDEN),
        constant("norm.weight", ONE, HIDDEN),
        noise("candidate_selector.predecessor_codebook", VOCABULARY, rank),
        noise("candidate_selector.successor_codebook", VOCABULARY, rank),
        noise("candidate_selector.hidden_projection.weight", rank, HIDDEN),
    ]
    for layer in (f"layers.{number}" for number in range(layers)):
        weights += [*attention(layer, ONE, gated=False), *mlp(layer, ONE)]
        for name in ("attention_conv", "mlp_conv"):
            weights += [
                noise(f"{layer}.{name}.base_kernel", 2, taps, HIDDEN),
                noise(f"{layer}.{name}.kernel_projection.weight", 2 * taps * HIDDEN // group, HIDDEN),
            ]
    write(folder / "model.safetensors", weights)


def _text(layers: int) -> dict[str, object]:
    return {
        "hidden_size": HIDDEN,
        "intermediate_size": FFN,
        "num_hidden_layers": layers,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "max_position_embeddings": CONTEXT,
        "vocab_size": VOCABULARY,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-06,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "initializer_range": 0.02,
        "use_cache": True,
    }


def _tokenizer(folder: Path) -> dict[str, int]:
    """Write a tokenizer with one token a byte, without merges; the ids of its tokens."""
    vocabulary = [*_byte_letters(), *SPECIAL, *WORDS]
    Tokenizer(
        vocabulary=vocabulary,
        merges=(),
        special=SPECIAL,
        words=WORDS,
        eos="<|im_end|>",
        pad="<|endoftext|>",
        chat_template=CHAT_TEMPLATE,
        length=CONTEXT,
    ).write(folder)
    return {token: number for number, token in enumerate(vocabulary)}


def _byte_letters() -> list[str]:
    """The letter that byte-level BPE writes for each byte: itself if it can be seen, else one from 256 on."""
    seen = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(256, 512))
    return [chr(byte) if byte in seen else chr(next(others)) for byte in range(256)]


def _common(folder: Path, config: dict[str, object], ids: dict[str, int]) -> None:
    _write(folder / "config.json", config)
    end, padding = ids["<|im_end|>"], ids["<|endoftext|>"]
    _write(folder / "generation_config.json", {"eos_token_id": [end, padding], "pad_token_id": padding})
    (folder / "README.md").write_text(README, encoding="utf-8")


def _write(path: Path, value: dict[str, object]) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
