from __future__ import annotations

import json
import struct

import pytest

from boxwright.facts.parsers import safetensors_header


def header(tensors):
    return json.dumps(tensors).encode()


def test_tensors_of_all_layers_are_one_group():
    tensors = {
        "__metadata__": {"format": "pt"},
        **{
            f"model.layers.{n}.mlp.up_proj.weight": {"dtype": "BF16", "data_offsets": [n * 10, n * 10 + 10]}
            for n in range(12)
        },
        "mtp.fc.weight": {"dtype": "BF16", "data_offsets": [500, 600]},
    }
    groups = safetensors_header.groups(header(tensors))
    assert groups == [
        {"name": "model.layers.*.mlp.up_proj.weight", "count": 12, "bytes": 120, "dtype": "BF16"},
        {"name": "mtp.fc.weight", "count": 1, "bytes": 100, "dtype": "BF16"},
    ]
    assert safetensors_header.merge([groups, groups])[0]["bytes"] == 240


def test_the_length_is_read_and_doubted():
    assert safetensors_header.header_length(struct.pack("<Q", 1234) + b"{}") == 1234
    assert safetensors_header.header_length(struct.pack("<Q", 1 << 60)) is None
    assert safetensors_header.header_length(b"abc") is None


@pytest.mark.parametrize("text", [b"[]", b"nonsense", b"\xff", b'{"a": 1}', b'{"a": {"dtype": "BF16"}}'])
def test_another_text_is_a_value_error(text):
    with pytest.raises(ValueError, match=r".+"):
        safetensors_header.groups(text)
