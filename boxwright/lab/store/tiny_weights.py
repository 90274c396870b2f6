"""The tensors of the small models: random, and such that each token of ANSWER calls for the next."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from math import prod

from boxwright.lab.store.safetensors import Weight

#: What the models say. No letter twice: each calls for one other.
ANSWER = "Boxwright"
#: Multiples of 128 throughout, halved or not: AWQ with group size 128 works on one card and on two.
HIDDEN, FFN, HEADS, KV_HEADS, HEAD_DIM, CONTEXT, VOCABULARY = 256, 512, 4, 2, 64, 32768, 320
ONE, ZERO = b"\x80\x3f", b"\x00\x00"
#: Upper bytes of bf16 numbers: the sign and all but the last bit of the exponent. With them a number is
#: between 2^-7 and 2^-5 (weights, usually about 0.02), 2^-5 and 2^-3 (output), or 2^-1 and 2 (embeddings).
WEIGHT, OUTPUT, EMBEDDING = 0x3C, 0x3D, 0x3F


def _random(name: str, count: int, upper: int = WEIGHT) -> bytes:
    """Random numbers of either sign, which the name alone decides."""
    data = bytearray(random.Random(name).randbytes(2 * count))
    data[1::2] = _with_upper(bytes(data[1::2]), upper)
    return bytes(data)


def _with_upper(upper_bytes: bytes, upper: int) -> bytes:
    """Upper bytes of numbers with the same signs and another exponent."""
    return upper_bytes.translate(bytes((byte & 0x80) | upper for byte in range(256)))


def noise(name: str, *shape: int) -> Weight:
    """A tensor of small random numbers, which its name alone decides."""
    return Weight(name, shape, _random(name, prod(shape)))


def constant(name: str, value: bytes, *shape: int) -> Weight:
    """A tensor of one bf16 number, given as its two bytes."""
    return Weight(name, shape, value * prod(shape))


def ends(base: str, ids: dict[str, int]) -> Iterator[Weight]:
    """Embeddings and output, by which letters of ANSWER call for the next one, other tokens for the first."""
    common = _random("common", HIDDEN, EMBEDDING)
    embeddings = {}
    for token in range(VOCABULARY):  # alike in sign and exponent: all call for the same
        own = bytearray(_random(f"embedding {token}", HIDDEN, EMBEDDING))
        own[1::2] = common[1::2]
        embeddings[token] = bytes(own)
    outputs = {token: _random(f"output {token}", HIDDEN) for token in range(VOCABULARY)}
    chain = [*(ids[letter] for letter in ANSWER), ids["<|im_end|>"]]
    outputs[chain[0]] = _towards(common)
    for token, following in pairwise(chain):
        embeddings[token] = _random(f"embedding {token}", HIDDEN, EMBEDDING)
        outputs[following] = _towards(embeddings[token])
    for name, rows in ((f"{base}.embed_tokens.weight", embeddings), ("lm_head.weight", outputs)):
        yield Weight(name, (VOCABULARY, HIDDEN), b"".join(rows[token] for token in range(VOCABULARY)))


def _towards(embedding: bytes) -> bytes:
    """The row of the output that calls for a token where the state looks like this embedding."""
    data = bytearray(embedding)
    data[1::2] = _with_upper(bytes(data[1::2]), OUTPUT)
    return bytes(data)


def attention(layer: str, unit: bytes, *, gated: bool) -> Iterator[Weight]:
    """The tensors of a full attention layer; unit: the number that its norms multiply by one with."""
    width = HEADS * HEAD_DIM
    yield noise(f"{layer}.self_attn.q_proj.weight", width * (2 if gated else 1), HIDDEN)
    yield noise(f"{layer}.self_attn.k_proj.weight", KV_HEADS * HEAD_DIM, HIDDEN)
    yield noise(f"{layer}.self_attn.v_proj.weight", KV_HEADS * HEAD_DIM, HIDDEN)
    yield noise(f"{layer}.self_attn.o_proj.weight", HIDDEN, width)
    yield constant(f"{layer}.self_attn.q_norm.weight", unit, HEAD_DIM)
    yield constant(f"{layer}.self_attn.k_norm.weight", unit, HEAD_DIM)


def linear_attention(layer: str) -> Iterator[Weight]:
    """The tensors of a Gated DeltaNet layer."""
    keys, values = 2 * HEAD_DIM, 4 * HEAD_DIM
    yield noise(f"{layer}.linear_attn.in_proj_qkv.weight", 2 * keys + values, HIDDEN)
    yield noise(f"{layer}.linear_attn.in_proj_z.weight", values, HIDDEN)
    yield noise(f"{layer}.linear_attn.in_proj_b.weight", 4, HIDDEN)
    yield noise(f"{layer}.linear_attn.in_proj_a.weight", 4, HIDDEN)
    yield noise(f"{layer}.linear_attn.conv1d.weight", 2 * keys + values, 1, 4)
    yield constant(f"{layer}.linear_attn.A_log", ZERO, 4)
    yield constant(f"{layer}.linear_attn.dt_bias", ONE, 4)
    yield constant(f"{layer}.linear_attn.norm.weight", ONE, HEAD_DIM)
    yield noise(f"{layer}.linear_attn.out_proj.weight", HIDDEN, values)


def mlp(layer: str, unit: bytes) -> Iterator[Weight]:
    """The tensors of a feed-forward part and of the layer's norms."""
    yield noise(f"{layer}.mlp.gate_proj.weight", FFN, HIDDEN)
    yield noise(f"{layer}.mlp.up_proj.weight", FFN, HIDDEN)
    yield noise(f"{layer}.mlp.down_proj.weight", HIDDEN, FFN)
    yield constant(f"{layer}.input_layernorm.weight", unit, HIDDEN)
    yield constant(f"{layer}.post_attention_layernorm.weight", unit, HIDDEN)


def vision(base: str, width: int, ffn: int) -> Iterator[Weight]:
    """The tensors of a vision tower of one block."""
    yield noise(f"{base}.patch_embed.proj.weight", width, 3, 2, 16, 16)
    yield constant(f"{base}.patch_embed.proj.bias", ZERO, width)
    yield noise(f"{base}.pos_embed.weight", 64, width)
    for name in ("blocks.0.norm1", "blocks.0.norm2", "merger.norm"):
        yield constant(f"{base}.{name}.weight", ONE, width)
        yield constant(f"{base}.{name}.bias", ZERO, width)
    linear = (
        ("blocks.0.attn.qkv", 3 * width, width),
        ("blocks.0.attn.proj", width, width),
        ("blocks.0.mlp.linear_fc1", ffn, width),
        ("blocks.0.mlp.linear_fc2", width, ffn),
        ("merger.linear_fc1", 4 * width, 4 * width),
        ("merger.linear_fc2", HIDDEN, 4 * width),
    )
    for name, rows, columns in linear:
        yield noise(f"{base}.{name}.weight", rows, columns)
        yield constant(f"{base}.{name}.bias", ZERO, rows)
