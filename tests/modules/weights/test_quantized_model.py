"""The module's whole way, with a program that writes a checkpoint's outline instead of quantizing."""

import json
import os
from pathlib import Path

import pytest
import yaml
from ansible.module_utils import store_manifest
from ansible.module_utils.python_environment import Step, Wanted

from ..conftest import ROOT
from .conftest import safetensors

VARIABLES = yaml.safe_load((ROOT / "roles/model_quantize/vars/main.yml").read_text())
KNOWN = VARIABLES["_model_quantize_architectures"]

#: Speaks the protocol of roles/model_quantize/files/quantize.py.
PROGRAM = """
import json, os, signal, struct, sys
job = json.load(open(sys.argv[1]))
def say(**event):
    print(json.dumps(event), flush=True)
print("a library prints this")
say(event="device", device="cpu", why="torch sees no card")
fault = os.environ.get("TEST_FAULT", "")
open(job["source"] + "/../method", "w").write(job["method"])
if fault == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
if fault == "ended":
    print("DeprecationWarning: `torch.jit.script` is deprecated", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
if fault.startswith("error:"):
    say(event="error", kind=fault[6:], detail="Because")
    sys.exit(1)
if fault == "traceback":
    raise RuntimeError("no such kernel")
say(event="stage", stage="quantizing on the processor")
say(event="layers", done=1, total=1)
group = job["group_size"]
tensors = {
    "model.embed_tokens.weight": ("F16", [32, 64], 2),
    "model.layers.0.mlp.up_proj.qweight": ("I32", [64, 16], 4),
    "model.layers.0.mlp.up_proj.qzeros": ("I32", [64 // group, 16], 4),
    "model.layers.0.mlp.up_proj.scales": ("F16", [64 // group, 128], 2),
}
if fault == "lost":
    del tensors["model.embed_tokens.weight"]
header, offset = {}, 0
for name, (dtype, shape, width) in tensors.items():
    size = shape[0] * shape[1] * width
    header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
    offset += size
text = json.dumps(header).encode()
os.makedirs(job["output"])
with open(job["output"] + "/model.safetensors", "wb") as stream:
    stream.write(struct.pack("<Q", len(text)) + text + bytes(offset if fault != "short" else offset - 1))
open(job["source"] + "/../calibration", "w").write(open(job["calibration"]).read())
if fault != "unjudged":
    now = float(os.environ.get("TEST_PERPLEXITY", "10.1"))
    say(event="measured", perplexity_source=10.0, perplexity=now, held_out_tokens=2048)
config = json.load(open(job["source"] + "/config.json"))
config["quantization_config"] = {"quant_method": "awq", "bits": job["bits"], "group_size": group,
                                 "zero_point": True, "version": "gemm"}
json.dump(config, open(job["output"] + "/config.json", "w"))
say(event="calibrated", blocks=3, block_tokens=512)
say(event="done", device="cpu", peak_bytes=1000)
"""


@pytest.fixture
def source(tmp_path):
    directory = tmp_path / "box" / "models" / "acme--tiny" / ("f" * 40)
    directory.mkdir(parents=True)
    config = {"model_type": "qwen3", "hidden_size": 64, "intermediate_size": 128}
    (directory / "config.json").write_text(json.dumps(config))
    (directory / "model.safetensors").write_bytes(
        safetensors(
            {
                "model.embed_tokens.weight": ("BF16", [32, 64], 2),
                "model.layers.0.mlp.up_proj.weight": ("BF16", [128, 64], 2),
            }
        )
    )
    return directory


@pytest.fixture
def call(tmp_path, source, run_module, prepared):
    path = str(tmp_path / "venvs" / "autoawq")
    steps = [
        Step(["torch==2", "transformers==4"], []),
        Step(["autoawq==0.2.9"], ["--no-deps", "--no-build-isolation"]),
    ]
    prepared(Wanted(path, steps, []))
    other = str(tmp_path / "venvs" / "llmcompressor")
    steps = [
        Step(["torch==2", "transformers==5"], []),
        Step(["llmcompressor==0.14"], ["--no-deps", "--no-build-isolation"]),
    ]
    prepared(Wanted(other, steps, []))

    def run(*, check=False, wanted=None, tool="autoawq==0.2.9", **arguments):
        one = {
            "method": "autoawq",
            "bits": 4,
            "group_size": 64,
            "source": {"kind": "hub", "repo": "acme/tiny", "revision": "f" * 40, "directory": str(source)},
            "directory": f"{source}-autoawq-w4g64",
            **(wanted or {}),
        }
        return run_module(
            "quantized_model",
            check=check,
            **{
                "store": str(tmp_path / "box" / "models"),
                "wanted": [one],
                "tools": {
                    "autoawq": {
                        "requirement": tool,
                        "architectures": KNOWN["autoawq"],
                        "path": path,
                        "packages": ["transformers==4"],
                        "constraints": [],
                    },
                    "llmcompressor": {
                        "requirement": "llmcompressor==0.14",
                        "architectures": KNOWN["llmcompressor"],
                        "path": other,
                        "packages": ["transformers==5"],
                        "constraints": [],
                    },
                },
                "environment": {"torch": "torch==2", "index_url": "", "torch_index_url": "", "size": 0},
                "program": {"quantize.py": PROGRAM, "parts.py": ""},
                "calibration": "Some text.\n\nMore of it.",
                "reserve": 0,
                "progress_file": str(tmp_path / "progress.json"),
                **arguments,
            },
        )

    return run


def test_made_once(call, source):
    first = call()
    assert first["changed"], first
    assert "acme/tiny: INT4 checkpoint made in" in first["said"]
    assert "torch sees no card" in str(first["warnings"])
    made = f"{source}-autoawq-w4g64"
    manifest = store_manifest.load(made)
    assert (manifest.kind, manifest.repo) == ("quantized", "acme/tiny")
    assert manifest.recipe["recipe"]["source"] == {"repo": "acme/tiny", "revision": "f" * 40}
    assert manifest.recipe["packages"] == {"tool": "1.0"}
    assert sorted(path.name for path in Path(made).iterdir()) == [
        store_manifest.NAME,
        "config.json",
        "model.safetensors",
    ]
    assert list((Path(made).parent.parent / ".staging").iterdir()) == []
    second = call()
    assert (second["changed"], second["msg"]) == (False, "acme/tiny: INT4 checkpoint there")


@pytest.mark.parametrize(
    ("now", "words"),
    [
        ("10.4", None),
        ("12.5", None),
        ("12.6", "perplexity 12.6, was 10"),
        ("nan", "perplexity nan, was 10"),
        ("inf", "model_quantize_worse_percent"),
    ],
)
def test_a_result_that_predicts_much_worse_is_not_kept(call, source, monkeypatch, now, words):
    monkeypatch.setenv("TEST_PERPLEXITY", now)
    result = call()
    if words is None:
        assert result["changed"], result
        made = store_manifest.load(f"{source}-autoawq-w4g64")
        assert made.recipe["perplexity"] == {"source": 10.0, "result": float(now), "tokens": 2048}
        assert f"perplexity {now}, was 10" in result["msg"]
    else:
        assert result["failed"]
        assert words in result["msg"]
        assert not Path(f"{source}-autoawq-w4g64").exists()


def test_another_method_has_its_own_tools_and_looks_at_its_own_form(call, source):
    result = call(wanted={"method": "llmcompressor", "directory": f"{source}-llmcompressor-w4g64"})
    assert (source.parent / "method").read_text() == "llmcompressor"
    # The program of this test writes AutoAWQ's form, which is none of llm-compressor's.
    assert "an engine needs compressed-tensors, pack-quantized" in result["msg"]
    assert not Path(f"{source}-llmcompressor-w4g64").exists()


def test_a_method_that_there_is_not(call):
    assert (
        "gptq is no way to quantize; there are autoawq, llmcompressor"
        in call(wanted={"method": "gptq"})["msg"]
    )


def test_nothing_is_read_of_a_source_once_it_is_made(call, source):
    call()
    for path in source.iterdir():
        path.unlink()
    source.rmdir()
    assert not call()["changed"]


def test_check_mode(call, source):
    result = call(check=True)
    assert result["changed"]
    assert "would be made" in result["msg"]
    assert not Path(f"{source}-autoawq-w4g64").exists()


def test_check_mode_before_the_weights_are_there(call, source):
    assert call(
        check=True,
        wanted={
            "source": {"kind": "hub", "repo": "acme/tiny", "revision": "f" * 40, "directory": f"{source}x"}
        },
    )["changed"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"calibration": "Other text."}, "calibration_sha256"),
        ({"tool": "autoawq==0.2.8"}, "tool: autoawq==0.2.9, now autoawq==0.2.8"),
        ({"blocks": 64}, "blocks: 128, now 64"),
    ],
)
def test_another_recipe_is_refused_while_one_is_there(call, source, arguments, named):
    call()
    before = Path(f"{source}-autoawq-w4g64").stat()
    result = call(**arguments)
    assert result["failed"]
    assert named in result["msg"]
    assert "remove the directory" in result["msg"]
    assert Path(f"{source}-autoawq-w4g64").stat() == before


def test_a_deployment_has_a_calibration_text_of_its_own(call, source):
    made = call(wanted={"calibration": "A text of its own."})
    assert made["changed"], made
    assert (source.parent / "calibration").read_text() == "A text of its own."
    assert not call(wanted={"calibration": "A text of its own."})["changed"]
    assert "calibration_sha256" in call()["msg"]


def test_a_flawed_one_is_made_again(call, source):
    call()
    os.truncate(f"{source}-autoawq-w4g64/model.safetensors", 10)
    result = call()
    assert result["changed"]
    assert "in place of a flawed one: model.safetensors (truncated: 10 of" in result["msg"]
    assert not call()["changed"]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("killed", "ran out of memory: it needs about 2.1 GB"),
        ("ended", "failed: a signal ended it (SIGTERM)"),
        ("error:card-memory", "set model_quantize_device: cpu"),
        ("error:no-card", "model_quantize_torch"),
        ("error:unsupported", "cannot be quantized: Because"),
        ("error:calibration", "cannot be quantized: Because"),
        ("error:unexpected", "failed: Because"),
        ("traceback", "failed: it ended with status 1; RuntimeError: no such kernel"),
        ("lost", "is not right: model.embed_tokens.weight is missing"),
        ("short", "is broken"),
        ("unjudged", "failed: it ended with status 0"),
    ],
)
def test_what_goes_wrong(call, source, monkeypatch, fault, words):
    monkeypatch.setenv("TEST_FAULT", fault)
    result = call()
    assert result["failed"]
    assert words in result["msg"], result["msg"]
    assert "Traceback" not in result["msg"]
    assert "Deprecation" not in result["msg"]
    assert not Path(f"{source}-autoawq-w4g64").exists()
    monkeypatch.delenv("TEST_FAULT")
    assert call()["changed"]


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"model_type": "qwen3_5", "hidden_size": 64}, "does not know the architecture qwen3_5"),
        ({"model_type": "qwen3", "hidden_size": 96}, "Set group_size: 32"),
        ({"model_type": "qwen3", "quantization_config": {"quant_method": "awq"}}, "leave quantize out"),
    ],
)
@pytest.mark.parametrize("check", [True, False])
def test_what_cannot_be_quantized(call, source, config, words, check):
    (source / "config.json").write_text(json.dumps(config))
    result = call(check=check)
    assert result["failed"]
    assert words in result["msg"]


def test_no_source(call, source):
    (source / "model.safetensors").unlink()
    assert "role model_weights" in call()["msg"]


def test_no_room(call):
    assert "not enough room" in call(reserve=10**18)["msg"]


def test_no_memory(call, monkeypatch):
    from ansible.module_utils import quantization

    monkeypatch.setattr(quantization, "available_memory", lambda: 10**9)
    assert "needs about 2.1 GB of memory, and the host has 1.0 GB" in call()["msg"]
