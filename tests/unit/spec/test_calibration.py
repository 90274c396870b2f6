"""Calibration texts: what is none is told with its place before anything else is done."""

import os

import pytest
import yaml

from boxwright.spec import calibration
from boxwright.spec.inventory import load
from boxwright.spec.validate import check

TEXT = "Some sentences that are like what the model will read.\n\n" * 60


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda path: None, "is not on this machine"),
        (lambda path: path.mkdir(), "is no file"),
        (lambda path: os.mkfifo(path), "is no file"),
        (lambda path: path.touch(), "is empty"),
        (lambda path: path.write_text(" \n" * 9000), "is empty"),
        (lambda path: path.write_text("Too little of it. " * 9), "has only 126 letters"),
        (lambda path: path.write_bytes(b"\xff\xfe\x00" * 2000), "cannot be read: it is no text in UTF-8"),
        (lambda path: path.write_bytes(b"GGUF\0\0\0" * 2000), "it has zero bytes"),
        (lambda path: (path.touch(), os.truncate(path, 2_100_000_000)), "has 2,100 MB"),
        (lambda path: path.symlink_to(path), "cannot be read: Too many levels of symbolic links"),
    ],
    ids=["missing", "directory", "pipe", "empty", "blank", "short", "UTF-16", "binary", "huge", "endless"],
)
@pytest.mark.parametrize("own", [True, False], ids=["of a deployment", "of the box"])
def test_what_is_no_text(tmp_path, make, why, own):
    path = tmp_path / "text.txt"
    make(path)
    [problem] = problems(tmp_path, own, str(path))
    assert why in problem.message
    assert problem.variable.endswith("calibration")
    assert (problem.line, problem.value) == (7 if own else 8, f'"{path}"')
    assert problem.allowed == calibration.ALLOWED


def test_a_path_that_begins_nowhere(tmp_path):
    [problem] = problems(tmp_path, True, "texts/mine.txt")
    assert "is no whole path" in problem.message


@pytest.mark.parametrize("own", [True, False])
def test_a_text(tmp_path, own):
    (tmp_path / "text.txt").write_text(TEXT)
    assert problems(tmp_path, own, str(tmp_path / "text.txt")) == []
    assert calibration.read(str(tmp_path / "text.txt")) == TEXT


def problems(place, own, path):
    """What an inventory has wrong that names a calibration text."""
    folder = place / "inventory"
    (folder / "host_vars").mkdir(parents=True)
    (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": {"box1": {}}}}))
    lines = [
        "box_gpus: {model: rtx5090, count: 1}",
        "box_deployments:",
        "  - name: q",
        "    model: qwen3-8b",
        "    image: vllm/vllm-openai:v0.29.0",
        "    context: 4096",
        f"    quantize: {{method: autoawq{f', calibration: {path}' if own else ''}}}",
        *([] if own else [f"model_quantize_calibration: {path}"]),
    ]
    (folder / "host_vars" / "box1.yml").write_text("\n".join(lines) + "\n")
    return check(load([folder]), ["box1"])
