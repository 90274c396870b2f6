"""The models on the hub and the file formats that they are written in."""

from __future__ import annotations

import hashlib
import json
import struct

import pytest

from boxwright.lab.store import safetensors, tiny
from boxwright.lab.store.gguf import Gguf, GgufError
from boxwright.lab.store.safetensors import Weight

MODELS = {"tiny-qwen3": tiny.qwen3, "tiny-qwen3.5-mtp": tiny.qwen3_5}
HASHES = {
    "tiny-qwen3": "d3b13f3cac78f49147b29e2dfe534b03b657f42b56ed85b76742ca2f8eb0b425",
    "tiny-qwen3.5-mtp": "062fe573d6bbc0b943270ba879c58bc42ba518ae845e50b111fa01387a9e419d",
    "tiny-qwen3.5-dflash2": "6a4cd10f4a5d6d43ebe264af779049c87c47d5d3f80406f33f43d9ce34c8afc2",
}


def content(folder) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def header(file) -> dict[str, dict]:
    raw = file.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    found = json.loads(raw[8 : 8 + size])
    del found["__metadata__"]
    return found


def row(file, name: str, number: int) -> list[float]:
    """A row of a bf16 tensor."""
    raw, entry = file.read_bytes(), header(file)[name]
    start = 8 + int.from_bytes(raw[:8], "little") + entry["data_offsets"][0]
    width = entry["shape"][1]
    values = struct.unpack_from(f"<{width}H", raw, start + number * width * 2)
    return [struct.unpack("<f", struct.pack("<I", value << 16))[0] for value in values]


@pytest.mark.parametrize("name", HASHES)
def test_a_tiny_model_is_the_same_for_ever(name, tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        {**MODELS, "tiny-qwen3.5-dflash2": tiny.dflash2}[name](tmp_path / folder)
    assert content(tmp_path / "a") == content(tmp_path / "b")
    # Whoever changes a model on purpose changes this: locks of hosts in use then name a commit that is gone.
    assert content(tmp_path / "a")["model.safetensors"] == HASHES[name]


def test_the_draft_model_fits_its_target(tmp_path):
    tiny.dflash2(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    tensors = header(tmp_path / "model.safetensors")
    own, hidden = config["dflash_config"], config["hidden_size"]
    assert tensors["fc.weight"]["shape"] == [hidden, hidden * len(own["target_layer_ids"])]
    groups = hidden // own["conv_group_size"]
    assert tensors["layers.0.mlp_conv.kernel_projection.weight"]["shape"] == [
        2 * own["conv_kernel_size"] * groups,
        hidden,
    ]
    codebook = tensors["candidate_selector.predecessor_codebook"]
    assert codebook["shape"] == [tiny.VOCABULARY, own["selector_rank"]]
    # Embeddings and output are the target's.
    assert not any("embed_tokens" in name or "lm_head" in name for name in tensors)


@pytest.mark.parametrize("name", MODELS)
def test_each_letter_of_the_answer_calls_for_the_next(name, tmp_path):
    MODELS[name](tmp_path)
    vocabulary = json.loads((tmp_path / "tokenizer.json").read_text())["model"]["vocab"]
    weights = tmp_path / "model.safetensors"
    embeddings = next(key for key in header(weights) if key.endswith("embed_tokens.weight"))
    outputs = [row(weights, "lm_head.weight", token) for token in range(tiny.VOCABULARY)]

    def following(token: str) -> str:
        state = row(weights, embeddings, vocabulary[token])
        scores = [sum(a * b for a, b in zip(state, output, strict=True)) for output in outputs]
        best = max(range(len(scores)), key=scores.__getitem__)
        return next(word for word, number in vocabulary.items() if number == best)

    said = [following("<|im_start|>")]
    while said[-1] != "<|im_end|>" and len(said) < 20:
        said.append(following(said[-1]))
    assert "".join(said) == tiny.ANSWER + "<|im_end|>"
    assert following("\u010a") == tiny.ANSWER[0]  # the byte of a line's end, after which an answer begins


def test_sizes_fit_groups_of_128_on_two_cards(tmp_path):
    tiny.qwen3(tmp_path)
    for name, entry in header(tmp_path / "model.safetensors").items():
        if name.endswith(("o_proj.weight", "down_proj.weight")):  # split by columns
            assert entry["shape"][1] // 2 % 128 == 0
        elif name.endswith("proj.weight"):
            assert entry["shape"][1] % 128 == 0


def test_the_hybrid_has_the_real_layout(tmp_path):
    tiny.qwen3_5(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    names = set(header(tmp_path / "model.safetensors"))
    assert config["architectures"] == ["Qwen3_5ForConditionalGeneration"]
    assert "mtp_num_hidden_layers" not in config
    assert config["text_config"]["mtp_num_hidden_layers"] == 1
    assert "model.language_model.layers.0.linear_attn.A_log" in names
    assert "model.language_model.layers.3.self_attn.q_proj.weight" in names
    assert "mtp.fc.weight" in names
    assert "model.visual.patch_embed.proj.weight" in names


def test_safetensors_layout(tmp_path):
    file = tmp_path / "x.safetensors"
    safetensors.write(file, [Weight("b", (2,), b"\1\2\3\4"), Weight("a", (1, 1), b"\5\6\7\x08", "F32")])
    raw = file.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    assert size % 8 == 0
    assert raw[8 + size :] == b"\5\6\7\x08\1\2\3\4"
    assert header(file)["b"] == {"dtype": "BF16", "shape": [2], "data_offsets": [4, 8]}
    with pytest.raises(ValueError, match="b: 3 bytes"):
        Weight("b", (2,), b"123")


def string(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def gguf(kind: int = 0) -> bytes:
    """A file with a number, a list of strings, and one tensor of two rows."""
    listed = struct.pack("<IQ", 8, 2) + string("x") + string("y")
    head = (
        b"GGUF"
        + struct.pack("<IQQ", 3, 1, 2)
        + string("general.count")
        + struct.pack("<II", 4, 7)
        + string("names")
        + struct.pack("<I", 9)
        + listed
        + string("w")
        + struct.pack("<IQQIQ", 2, 3, 2, kind, 0)
    )
    return head + bytes(-len(head) % 32) + struct.pack("<6f", *range(6))


def test_gguf(tmp_path):
    (tmp_path / "x.gguf").write_bytes(gguf())
    model = Gguf.read(tmp_path / "x.gguf")
    assert model.metadata == {"general.count": 7, "names": ["x", "y"]}
    (tensor,) = model.tensors
    assert (tensor.name, tensor.kind, tensor.shape) == ("w", "F32", (2, 3))
    assert struct.unpack("<6f", tensor.data) == tuple(range(6))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"GGML" + bytes(40), "not a GGUF file"),
        (gguf()[:40], "ends too early"),
        (gguf(kind=12), "tensor w is of type 12"),
    ],
)
def test_what_is_no_gguf_is_told(tmp_path, content, told):
    (tmp_path / "x.gguf").write_bytes(content)
    with pytest.raises(GgufError, match=told):
        Gguf.read(tmp_path / "x.gguf")
