"""The verb recommend through invoke itself: table, JSON, exit status, wrong words."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def called(*words):
    argv = [sys.executable, "-m", "invoke", "--search-root", str(ROOT), "recommend"]
    return subprocess.run(
        [*argv, "--inventory", str(ROOT / "inventory" / "rigs"), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_table_is_a_page():
    done = called("--host", "rtx5090", "--offline")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 100
    assert "\033" not in done.stdout
    assert lines[2].split() == ["model", "KV", "drafts", "cards", "fits", "context", "at", "once",
                                "tokens/s", "why"]  # fmt: skip
    assert lines[3].startswith("qwen3.8-27b-int4 ")
    assert "--all-choices" in done.stdout
    rows = [line for line in lines[3:] if " yes " in line or " less " in line]
    assert 8 <= len(rows) <= 12
    assert called("--host", "rtx5090", "--offline", "--all-choices").stdout.count("\n") > len(lines)


def test_the_same_for_programs():
    done = called("--host", "rtx3090x2", "--offline", "--json", "--context", "262,144")
    found = json.loads(done.stdout)
    assert found["wish"] == {"context": 262144, "concurrency": 4, "sequence_tokens": 8192}
    best = found["choices"][0]
    assert set(best) == {
        "model", "kv_cache", "speculative", "tensor_parallel", "gpus", "image", "fits", "context",
        "sequences",
        "decode_tokens_per_s", "prefill_tokens_per_s", "advice", "why", "deployment",
    }  # fmt: skip
    assert best["deployment"]["context"] == 262144
    assert best["tensor_parallel"] == 2
    assert best["decode_tokens_per_s"]["low"] < best["decode_tokens_per_s"]["high"]
    assert found["nearest"] is None


def test_nothing_fits():
    done = called("--host", "rtx5090", "--offline", "--model", "qwen3.8-27b-fp8")
    assert done.returncode == 3
    assert "nothing of the catalog works" in done.stdout
    assert "weights-do-not-fit: " in done.stdout
    assert "- model: qwen3.8-27b-int4" in done.stdout
    as_json = called("--host", "rtx5090", "--offline", "--model", "qwen3.8-27b-fp8", "--json")
    assert as_json.returncode == 3
    assert json.loads(as_json.stdout)["nearest"]["missing_bytes_per_gpu"] > 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--context", "many"], "--context many: a whole number"),
        (["--context", "0"], "--context 0: a whole number"),
        (["--concurrency", "-1"], "--concurrency -1: a whole number"),
        (["--concurrency", "99999999999999999999"], "a whole number"),
        (["--model", "qwen9"], "begins with 'qwen9'"),
        (["--facts", "/nowhere/facts.json"], "cannot be read"),
    ],
)
def test_wrong_words(words, said):
    done = called("--host", "rtx5090", "--offline", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_host():
    done = called("--host", "rtx5091", "--offline")
    assert done.returncode == 2
    assert "rtx5090" in done.stderr
