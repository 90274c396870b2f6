"""The modules engine_bench and bench_runs, on a double of Docker that hands out a recorded result."""

import json
import os
import stat
import sys
from pathlib import Path

import pytest
from ansible.module_utils import bench_client, bench_run, bench_store
from ansible.module_utils.bench_client import kept, span
from ansible.module_utils.engine_store import Store

from boxwright.bench.run import read

sys.path.insert(0, str(Path(__file__).parent))
from engine_doubles import Server

RECORDED = Path(__file__).parents[1] / "unit" / "bench" / "recorded"
KEY = "0123456789abcdef0123456789abcdef"
SMI = "0, GPU-0, 2100 MHz, 10501 MHz, 300.00 W, 61, 97 %, 0x0000000000000004"
FACTS = "0, GPU-0, NVIDIA GeForce RTX 5090, 580.105.08, 32607 MiB, 575.00 W, 3090 MHz, 14001 MHz, 16"
#: `docker exec [--interactive] CONTAINER WORDS`: notes the words, and does as the container would.
DOCKER = """#!{python}
import json, os, sys, pathlib
place = pathlib.Path({place!r})
words = sys.argv[2:]
words = words[1:] if words[0] == "--interactive" else words
with (place / "calls").open("a") as calls:
    calls.write(json.dumps(words) + "\\n")
if words[1] == "cat":
    sys.stdout.write((place / "result.json").read_text())
elif words[1] == "sh" and 'cat > "$1"' in words[3]:
    (place / "dataset.json").write_text(sys.stdin.read())
elif words[1] == "sh":
    said = place / "said"
    if said.exists() and not ("{{ready}}" in said.read_text() and "--ready-check-timeout-sec" not in words):
        sys.exit(said.read_text())
"""
METRICS = """vllm:num_requests_running{engine="0"} 0.0
vllm:num_requests_waiting{engine="0"} 0.0
vllm:prompt_tokens_total{engine="0"} 100.0
vllm:generation_tokens_total{engine="0"} 100.0
"""


class Box:
    """A host with one release that serves."""

    def __init__(self, place, server, run_module):
        self.place, self.server, self._run_module = place, server, run_module
        self.root = str(place / "root")

    def bench(self, **more):
        asked = {"prompts": ["Tell a story."], "concurrencies": [2], "contexts": [0], "repeats": 2}
        asked.update(root_dir=self.root, config_dir=str(self.place / "etc"))
        return self._run_module("engine_bench", **{**asked, **more})

    def runs(self, *wanted):
        return self._run_module("bench_runs", root_dir=self.root, wanted=list(wanted))

    def calls(self):
        return [json.loads(line) for line in (self.place / "calls").read_text().splitlines()]


@pytest.fixture
def box(tmp_path, monkeypatch, run_module):
    server = Server()
    server.metrics, server.key = METRICS, KEY
    folder = tmp_path / "bin"
    folder.mkdir()
    smi = f'case "$*" in *power.limit*) echo "{FACTS}";; *) echo "{SMI}";; esac'
    scripts = {
        "nvidia-smi": f"#!/bin/sh\n{smi}\n",
        "docker": DOCKER.format(python=sys.executable, place=str(tmp_path)),
    }
    for name, text in scripts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(bench_client, "DOCKER", str(folder / "docker"))
    # The double of an endpoint asks for the key there, too.
    monkeypatch.setattr("ansible.module_utils.diagnosis_reading.health", lambda _: 200)
    (tmp_path / "result.json").write_text((RECORDED / "prompts.json").read_text())
    keys = tmp_path / "etc" / "engines" / "qwen"
    keys.mkdir(parents=True)
    (keys / "api-key").write_text(KEY + "\n")
    state = {
        "name": "qwen", "engine": "vllm", "bind": "127.0.0.1", "port": server.port, "devices": ["GPU-0"],
        "command": ["vllm", "serve", "/model"], "key_file": str(keys / "api-key"),
    }  # fmt: skip
    plan = {"served_name": "qwen", "context": 4096, "concurrency": 4, "image": "vllm/vllm-openai:v0.32.0"}
    store = Store(str(tmp_path / "root"), "qwen")
    store.write("0123456789ab", state, plan, "unit\n")
    store.promote("0123456789ab")
    yield Box(tmp_path, server, run_module)
    server.close()


def test_a_release_on_trial_is_measured_while_it_runs_and_no_longer(box, monkeypatch):
    store = Store(box.root, "qwen")
    counts = store.read("0123456789ab")
    store.write("ba9876543210", counts.state, counts.plan, "unit of a trial\n")
    running = ["ba9876543210"]

    class Service:
        def __init__(self, name, docker):
            assert name == "qwen"

        def running_release(self):
            return running[0]

    monkeypatch.setattr("boxwright.ansible.modules.engine_bench.Service", Service)
    assert box.bench(release="ba9876543210")["run"]["release"] == "ba9876543210"
    assert box.bench()["run"]["release"] == "0123456789ab"
    running[0] = "0123456789ab"
    assert "release ba9876543210 of qwen does not run any more" in box.bench(release="ba9876543210")["msg"]


def test_a_run_is_the_engines_own_figures_with_the_cards_beside(box):
    result = box.bench()
    assert result.get("changed") is False, result
    engine = json.loads((RECORDED / "prompts.json").read_text())
    found = read(result["run"])
    [point] = found.points
    assert (point.place.concurrency, len(point.repeats)) == (2, 2)
    assert point.spread("output").median == pytest.approx(engine["output_throughput"])
    assert point.spread("ttft").median == pytest.approx(engine["median_ttft_ms"])
    assert point.spread("power").median == 300
    assert point.throttled() == {"software power cap": 1.0}
    assert point.repeats[0].tokens_per_joule == pytest.approx(
        engine["total_output_tokens"] / (300 * engine["duration"]), rel=0.02
    )
    assert found.facts["cards"][0]["driver_version"] == "580.105.08"


def test_the_run_is_kept_without_long_lists_and_for_its_owner_only(box):
    path = Path(box.bench()["path"])
    assert path.parent == Path(box.root) / "bench" / "qwen"
    assert path.stat().st_mode & 0o777 == 0o600
    kept_run = json.loads(path.read_text())
    assert kept_run["release"] == "0123456789ab"
    assert "generated_texts" not in path.read_text()
    assert kept_run["points"][0]["repeats"][0]["engine"]["ttfts"]


def test_the_key_is_in_no_argument_and_no_result(box):
    result = box.bench()
    assert KEY not in json.dumps(result)
    assert KEY not in json.dumps(box.calls())
    assert KEY not in Path(result["path"]).read_text()
    [wrapper] = {words[3] for words in box.calls() if words[1] == "sh" and "OPENAI_API_KEY" in words[3]}
    assert "/run/boxwright/api-key" in wrapper


def test_every_repeat_asks_what_was_never_asked_before(box):
    box.bench(repeats=3, contexts=[256])
    seeds = [words[words.index("--seed") + 1] for words in box.calls() if "--seed" in words]
    assert len(seeds) == len(set(seeds)) == 6
    assert box.calls()[-1][1:] == ["rm", "-rf", bench_client.PLACE]


def test_tokens_that_the_engine_made_for_others_are_told(box):
    """The counters rise by more than the benchmark's own tokens."""
    made = json.loads((RECORDED / "prompts.json").read_text())["total_output_tokens"]
    texts = [
        METRICS.replace(
            'generation_tokens_total{engine="0"} 100.0',
            f'generation_tokens_total{{engine="0"}} {100 + made + 50}',
        )
    ]
    box.server.metrics = METRICS
    calls = []

    def measure(client, argv, limit_s):
        calls.append(argv)
        box.server.metrics = texts[0]
        return json.loads((RECORDED / "prompts.json").read_text())

    original, bench_client.Client.measure = bench_client.Client.measure, measure
    try:
        run = box.bench(repeats=1)["run"]
    finally:
        bench_client.Client.measure = original
    assert len(calls) == 1
    assert read(run).points[0].repeats[0].strangers == 50


def test_an_engine_that_is_busy_is_not_measured(box):
    box.server.metrics = METRICS.replace('running{engine="0"} 0.0', 'running{engine="0"} 3.0')
    result = box.bench()
    assert result["failed"]
    assert "3 requests of others" in result["msg"]
    assert not (Path(box.root) / "bench").exists()


def test_a_benchmark_that_fails_says_why_and_nothing_is_kept(box):
    (box.place / "said").write_text("Traceback\nValueError: no such tokenizer")
    result = box.bench()
    assert result["failed"]
    assert "no such tokenizer" in result["msg"]
    assert not (Path(box.root) / "bench").exists()


def test_a_benchmark_none_of_whose_requests_was_answered_is_no_measurement(box):
    engine = json.loads((RECORDED / "prompts.json").read_text())
    engine.update(completed=0, failed=4, errors=["Bad Request"] * 4)
    (box.place / "result.json").write_text(json.dumps(engine))
    result = box.bench()
    assert result["failed"]
    assert "no request was answered: Bad Request" in result["msg"]
    assert not (Path(box.root) / "bench").exists()


def test_a_release_without_the_option_is_asked_without_it(box):
    (box.place / "said").write_text(
        "vllm: error: unrecognized arguments: --ready-check-timeout-sec 0 {ready}"
    )
    result = box.bench()
    assert len(result["run"]["points"][0]["repeats"]) == 2
    asked = [words for words in box.calls() if "--seed" in words]
    assert ["--ready-check-timeout-sec" in words for words in asked] == [True, False, False]


def test_what_does_not_fit_is_refused_before_anything_is_asked(box):
    result = box.bench(contexts=[5000])
    assert result["failed"]
    assert "do not fit the release's context of 4096" in result["msg"]
    assert not (box.place / "calls").exists()


@pytest.mark.parametrize("declared", ["auto", None])
def test_a_context_that_was_left_to_the_engine_is_asked_of_it(box, declared):
    store = Store(box.root, "qwen")
    release = store.read("0123456789ab")
    store.write("0123456789ab", release.state, {**release.plan, "context": declared}, release.unit)
    box.server.longest = 2048
    result = box.bench(contexts=[3000])
    assert "do not fit the release's context of 2048" in result["msg"]
    assert not box.bench(contexts=[1000]).get("failed")
    box.server.longest = None
    assert "does not say how many tokens it takes" in box.bench()["msg"]


def test_repeats_for_which_there_is_no_time_are_left_out_and_told(box, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(bench_run.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(
        bench_run.Bench, "_once", lambda *_: now.__setitem__(0, now[0] + 40) or {"engine": {}}
    )
    run = box.bench(concurrencies=[1, 2], repeats=3, limit_s=100)["run"]
    assert [len(point["repeats"]) for point in run["points"]] == [1, 1]
    assert len(run["left_out"]) == 4


def test_what_serves_no_text_is_refused(box):
    store = Store(box.root, "qwen")
    release = store.read("0123456789ab")
    store.write("0123456789ab", release.state, {**release.plan, "serves": "embeddings"}, release.unit)
    assert "qwen serves embeddings, and the benchmark measures how fast text is written" in box.bench()["msg"]


def test_sglang_is_refused(box):
    store = Store(box.root, "qwen")
    release = store.read("0123456789ab")
    store.write("0123456789ab", dict(release.state, engine="sglang"), release.plan, release.unit)
    assert "sglang" in box.bench()["msg"]


def test_kept_runs_are_listed_and_handed_out_by_id_release_and_last(box, monkeypatch):
    ids = iter(["20261130T070000Z-0123456789ab", "20261130T080000Z-0123456789ab"])
    monkeypatch.setattr(bench_store, "new_id", lambda *_: next(ids))
    box.bench()
    box.bench()
    found = box.runs("last", "20261130T07", "01234567", "nothing")
    assert [one["id"][:11] for one in found["runs"]] == ["20261130T08", "20261130T07"]
    meant = {word: [run["id"][:11] for run in runs] for word, runs in found["found"].items()}
    assert meant == {
        "last": ["20261130T08"], "20261130T07": ["20261130T07"],
        "01234567": ["20261130T08", "20261130T07"], "nothing": [],
    }  # fmt: skip


def test_a_broken_record_is_no_run(box):
    box.bench()
    place = Path(box.root) / "bench" / "qwen"
    (place / "20261130T090000Z-0123456789ab.json").write_text("{")
    (place / "notes.json").write_text("{}")
    assert len(box.runs()["runs"]) == 1


def test_the_span_is_the_requests_own_where_they_tell_it():
    assert span({"duration": 5.0, "start_times": [103.0, 101.0]}, 120.0) == [101.0, 106.0]
    assert span({"duration": 5.0}, 120.0) == [115.0, 120.0]
    # Another machine's clock, or none.
    assert span({"duration": 5.0, "start_times": [9e9]}, 120.0) == [115.0, 120.0]


def test_errors_are_kept_once():
    found = kept({"errors": ["", "Trace\nOSError: gone", "Trace\nOSError: gone"], "itls": [[1]], "failed": 2})
    assert found == {"errors": ["OSError: gone"], "failed": 2}
