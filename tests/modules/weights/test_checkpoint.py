"""Checkpoints in a directory: whole, or what is wrong with them."""

import json

import pytest
from ansible.module_utils import checkpoint

from .conftest import REPOSITORY, safetensors


@pytest.fixture
def directory(tmp_path):
    for path, content in REPOSITORY.items():
        (tmp_path / path).write_bytes(content)
    return tmp_path


def test_whole(directory):
    tensors = checkpoint.tensors(str(directory))
    assert tensors == {"model.layers.0.mlp.up_proj.weight": checkpoint.Tensor("F16", (64, 64), 8192)}
    assert checkpoint.config(str(directory))["model_type"] == "qwen3"


def test_shards_of_the_index(directory):
    (directory / "model.safetensors").unlink()
    for n in (1, 2):
        (directory / f"model-0000{n}-of-00002.safetensors").write_bytes(
            safetensors({f"t{n}": ("BF16", [8], 2)})
        )
    index = {"weight_map": {f"t{n}": f"model-0000{n}-of-00002.safetensors" for n in (1, 2)}}
    (directory / "model.safetensors.index.json").write_text(json.dumps(index))
    (directory / "other.safetensors").write_bytes(b"not listed, not read")
    assert sorted(checkpoint.tensors(str(directory))) == ["t1", "t2"]
    (directory / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(checkpoint.CheckpointError, match=r"lacks model-00002-of-00002\.safetensors"):
        checkpoint.tensors(str(directory))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it is empty"),
        (b"x" * 100, "not a safetensors file"),
        (REPOSITORY["model.safetensors"][:-1], "where its header says"),
        (REPOSITORY["model.safetensors"] + b"x", "where its header says"),
        (b"\x10" + b"\0" * 7 + b"{" * 16, "header that cannot be read"),
        (b"\x02" + b"\0" * 7 + b"[]", "header that cannot be read"),
    ],
)
def test_damaged_weights(directory, content, words):
    (directory / "model.safetensors").write_bytes(content)
    with pytest.raises(checkpoint.CheckpointError, match=words) as caught:
        checkpoint.tensors(str(directory))
    assert str(directory / "model.safetensors") in str(caught.value)


@pytest.mark.parametrize(
    ("content", "words"), [(None, "is missing"), (b"{", "cannot be read"), (b"[]", "not a JSON object")]
)
def test_configuration(directory, content, words):
    (directory / "config.json").unlink()
    if content is not None:
        (directory / "config.json").write_bytes(content)
    with pytest.raises(checkpoint.CheckpointError, match=words):
        checkpoint.config(str(directory))


def test_nothing_there(tmp_path):
    with pytest.raises(checkpoint.CheckpointError, match="does not exist"):
        checkpoint.weights(str(tmp_path / "no"))
    (tmp_path / "file").touch()
    with pytest.raises(checkpoint.CheckpointError, match="not a directory"):
        checkpoint.weights(str(tmp_path / "file"))
    with pytest.raises(checkpoint.CheckpointError, match="no weights"):
        checkpoint.weights(str(tmp_path))
