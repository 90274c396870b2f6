"""A box for the page's tests: with everything, long names among them; and one that is in trouble."""

import importlib.util
import json
from pathlib import Path

from boxwright.bench.run import read
from boxwright.doctor.doctor import diagnose
from boxwright.doctor.glance import glance
from boxwright.doctor.log import Log
from boxwright.facts.runs import past_runs
from boxwright.page.page import Seen

UNIT = Path(__file__).parents[1]
spec = importlib.util.spec_from_file_location("glances", UNIT / "doctor" / "test_glance.py")
glances = importlib.util.module_from_spec(spec)
spec.loader.exec_module(glances)

GIB = 1024**3
LINES = [
    {"name": "driver", "bytes": GIB // 2, "why": "the driver and its context"},
    {"name": "weights", "bytes": 15 * GIB, "why": "RedHatAI/Qwen3.8-27B-INT4, half of them on this card"},
    {"name": "drafter", "bytes": GIB, "why": "the layer that drafts"},
    {"name": "vision tower", "bytes": GIB, "why": "whole on each card"},
    {"name": "activations and graphs", "bytes": 2 * GIB, "why": "8192 tokens in a step"},
    {"name": "sequence state", "bytes": GIB, "why": "8 sequences of the linear layers"},
    {"name": "KV cache", "bytes": 10 * GIB, "why": "412,000 tokens in fp8"},
    {"name": "left free", "bytes": 2 * GIB, "why": "gpu_memory_utilization 0.93"},
]
PLAN = {
    "gates": [],
    "advice": [
        {
            "id": "draft-tokens-cost-concurrency",
            "message": "Two drafted tokens pay for one request at a time, and cost from 8 requests on.",
            "fix": ["declare speculative: {method: mtp, tokens: 1} where many ask at once"],
        }
    ],
    "deployments": [
        {
            "name": "qwen",
            "memory": {"cards": [{"index": 0, "title": "RTX 5090", "card_bytes": 32 * GIB, "lines": LINES}]},
        }
    ],
}


def bench():
    points = [
        {"concurrency": at, "context": None,
         "repeats": [{"engine": {"output_throughput": 95 * at**0.8 + extra,
                                 "median_tpot_ms": 9 + at / 4 + extra / 20}} for extra in (0, 3, 5)]}
        for at in (1, 2, 4, 8, 16)
    ] + [
        {"concurrency": 1, "context": at,
         "repeats": [{"engine": {"median_tpot_ms": 9 + at / 20000 + extra, "median_ttft_ms": at / 4,
                                 "total_input_tokens": at}} for extra in (0, 0.3)]}
        for at in (1024, 8192, 65536)
    ]  # fmt: skip
    speed = {"decode_tokens_per_s": {"low": 80, "high": 120}, "decode_ceiling_tokens_per_s": 140,
             "prefill_tokens_per_s": {"low": 3000, "high": 6000}}  # fmt: skip
    return read({"id": "20261130T060000Z-0123456789ab", "deployment": "qwen", "release": "0123456789ab",
                 "image": "vllm/vllm-openai:v0.32.0", "made": "2026-11-30T06:00:00Z", "points": points,
                 "plan": {"speed": speed}})  # fmt: skip


def runs():
    told = []
    for number, (verb, outcome, more) in enumerate(
        [
            ("provision", "ok", {"changed": {"nvidia_driver": 5, "container_runtime": 4, "engine": 3},
             "releases": [{"deployment": "qwen", "before": None, "after": "aaaaaaaaaaaa"}]}),
            ("verify", "ok", {}),
            ("provision", "refused", {"failure": {"role": "preflight", "task": "The plan can work",
                                                  "message": "does-not-fit: weights take 31.2 GiB of 32.0"}}),
            ("provision", "failed", {"failure": {"role": "engine", "task": "x", "message":
                "qwen does not serve: ValueError: No available memory for the cache blocks"}}),
            ("bench", None, {}),
            ("rollback", "ok", {"changed": {"engine": 1}, "releases": [
                {"deployment": "qwen", "before": "bbbbbbbbbbbb", "after": "0123456789ab"}]}),
        ]
    ):  # fmt: skip
        start = {"event": "begun", "run": str(number), "verb": verb, "user": "user-1", "controller": "host-2",
                 "at": 1_764_486_000 + 5000 * number}  # fmt: skip
        end = {"event": "ended", "run": str(number), "at": start["at"] + 61, "outcome": outcome, **more}
        told += [json.dumps(start), *([json.dumps(end)] if outcome else [])]
    return past_runs(told, lambda *_: None)[::-1]


def box(**changes):
    raw = json.loads(json.dumps(glances.RAW))
    rows = raw["cards"]["rows"]
    rows[1] = {
        **rows[0],
        "index": "1",
        "temperature.gpu": "58",
        "utilization.gpu": "64 %",
        "power.draw": "212.10 W",
    }
    log = (
        b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. "
        b"GPU 0 has a total capacity of 31.36 GiB\n"
    )
    given = {
        "name": "box1",
        "made": "2026-11-30 07:02 UTC",
        "version": "0.1.0",
        "glance": glance(raw),
        "plan": PLAN,
        "report": diagnose([Log("journal", log, "engine")]),
        "benches": [bench()],
        "runs": runs(),
    }
    return Seen(**{**given, **changes})
