"""Which files of a repository are fetched, and which repositories are refused."""

import json

import pytest
from ansible.module_utils import weight_files


def files(*names):
    return [{"path": name, "size": 10, "sha256": None} for name in names]


@pytest.mark.parametrize(
    ("names", "options", "wanted"),
    [
        pytest.param(
            [
                "config.json",
                "model.safetensors",
                "tokenizer.json",
                "tokenizer.model",
                "merges.txt",
                "vocab.txt",
            ],
            {},
            [
                "config.json",
                "merges.txt",
                "model.safetensors",
                "tokenizer.json",
                "tokenizer.model",
                "vocab.txt",
            ],
            id="what an engine reads",
        ),
        pytest.param(
            [
                "config.json",
                "model.safetensors",
                "README.md",
                "LICENSE",
                "LICENSE.txt",
                "USAGE_POLICY.txt",
                "requirements.txt",
                "figures/a.png",
                ".gitattributes",
                "model.gguf",
                "onnx/model.onnx",
            ],
            {},
            ["config.json", "model.safetensors"],
            id="nothing else",
        ),
        pytest.param(
            ["config.json", "model.safetensors", "pytorch_model.bin", "pytorch_model.bin.index.json", "x.pt"],
            {"pickled": True},
            ["config.json", "model.safetensors"],
            id="no pickled weights beside safe ones, even where allowed",
        ),
        pytest.param(
            ["config.json", "pytorch_model-00001-of-00001.bin", "pytorch_model.bin.index.json"],
            {"pickled": True},
            ["config.json", "pytorch_model-00001-of-00001.bin", "pytorch_model.bin.index.json"],
            id="pickled weights where allowed and alone",
        ),
        pytest.param(
            [
                "config.json",
                "model-00001-of-00002.safetensors",
                "model-00002-of-00002.safetensors",
                "model.safetensors.index.json",
                "consolidated.safetensors",
                "consolidated.safetensors.index.json",
                "original/consolidated.00.safetensors",
            ],
            {},
            [
                "config.json",
                "model-00001-of-00002.safetensors",
                "model-00002-of-00002.safetensors",
                "model.safetensors.index.json",
            ],
            id="no second copy of the weights",
        ),
        pytest.param(
            ["params.json", "config.json", "consolidated.safetensors"],
            {},
            ["config.json", "consolidated.safetensors", "params.json"],
            id="the consolidated file where it is the only one",
        ),
        pytest.param(
            [
                "1_Pooling/config.json",
                "2_Dense/model.safetensors",
                "2_Dense/pytorch_model.bin",
                "config.json",
                "model.safetensors",
                "modules.json",
                "onnx/config.json",
                "x/1_Pooling/config.json",
            ],
            {},
            [
                "1_Pooling/config.json",
                "2_Dense/model.safetensors",
                "config.json",
                "model.safetensors",
                "modules.json",
            ],
            id="the steps by which vectors are made",
        ),
        pytest.param(
            [
                "config.json",
                "m.safetensors",
                "modeling_x.py",
                "chat_template.jinja",
                "additional_chat_templates/tool.jinja",
            ],
            {},
            ["additional_chat_templates/tool.jinja", "chat_template.jinja", "config.json", "m.safetensors"],
            id="templates, no code",
        ),
        pytest.param(
            ["config.json", "m.safetensors", "modeling_x.py"],
            {"code": True},
            ["config.json", "m.safetensors", "modeling_x.py"],
            id="code where allowed",
        ),
    ],
)
def test_selection(names, options, wanted):
    selection = weight_files.select(files(*names), **options)
    assert sorted(file["path"] for file in selection.wanted) == sorted(wanted)
    assert sorted([file["path"] for file in selection.wanted] + selection.left_out) == sorted(names)


def test_small_files_come_first():
    listed = [
        {"path": "a.safetensors", "size": 5, "sha256": None},
        {"path": "tokenizer.json", "size": 9000, "sha256": None},
        {"path": "config.json", "size": 700, "sha256": None},
    ]
    assert [file["path"] for file in weight_files.select(listed).wanted] == [
        "config.json",
        "tokenizer.json",
        "a.safetensors",
    ]


@pytest.mark.parametrize(
    "path", ["../evil.json", "/etc/passwd", "a/../../b", "a//b", "./a", "", "a\\b.json", "nul\0.json", ".."]
)
def test_names_that_leave_the_directory(path):
    with pytest.raises(weight_files.PathError):
        weight_files.select(files("config.json", path))


@pytest.mark.parametrize(
    ("names", "pickled", "words"),
    [
        (["config.json", "model.safetensors"], False, None),
        (["config.json", "pytorch_model.bin"], True, None),
        (["config.json", "pytorch_model.bin"], False, "model_weights_allow_pickle: [acme/tiny]"),
        (["config.json", "a.bin", "b.pt", "c.pth", "d.ckpt"], False, "a.bin, b.pt, c.pth, …"),
        (["config.json", "model.gguf"], False, "no weights in the safetensors format"),
        (["config.json", "sub/model.safetensors"], False, "no weights in the safetensors format"),
        (["model.safetensors"], False, "no config.json"),
        ([], False, "lists no file"),
    ],
)
def test_refusal(names, pickled, words):
    refused = weight_files.refusal("acme/tiny", files(*names), pickled)
    assert refused is None if words is None else words in refused


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({"config.json": "{}"}, None),
        ({"config.json": '{"auto_map": {}}'}, None),
        (
            {"config.json": '{"auto_map": {"AutoModel": "modeling_x.X"}}'},
            "auto_map in config.json: AutoModel",
        ),
        (
            {"config.json": "{}", "tokenizer_config.json": '{"auto_map": ["tok.T", null]}'},
            "tokenizer_config.json",
        ),
        ({"config.json": "[]"}, "not a JSON object"),
        ({"config.json": "{"}, "not a JSON object"),
        ({}, None),
    ],
)
def test_code(texts, words):
    refused = weight_files.code_refusal("acme/tiny", texts)
    assert refused is None if words is None else words in refused


def test_missing_shards():
    index = json.dumps({"weight_map": {"a": "1.safetensors", "b": "2.safetensors", "c": "1.safetensors"}})
    assert weight_files.missing_shards(index, ["1.safetensors"]) == ["2.safetensors"]
    assert weight_files.missing_shards(index, ["1.safetensors", "2.safetensors"]) == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"weight_map": []}', '{"weight_map": null}'])
def test_no_index(text):
    with pytest.raises(ValueError, match="no index"):
        weight_files.missing_shards(text, [])
