"""The verb tune: a box whose speed is known, every way that a candidate may end, the box as it was."""

import json
import os
import signal
import threading
import time

import pytest

from boxwright import catalog, planner
from boxwright.ansible import lost_runs, runs
from boxwright.cli import bisecting, trials, tune_wish, tuning
from boxwright.cli.ansible_run import HostReport, RunReport
from boxwright.cli.interrupts import interrupts
from boxwright.cli.tune_journal import Journal
from boxwright.errors import UserError
from boxwright.facts import HostFacts
from boxwright.spec.problem import SpecErrors
from boxwright.spec.validate import judged_box
from boxwright.tuner.trial import Candidate, Trial

DEPLOYMENT = """
  - name: qwen
    model: qwen3.8-27b-int4
    image: vllm/vllm-openai:v0.29.0
    context: 32768
    concurrency: 4
    kv_cache: fp8
    max_batched_tokens: 4096
"""
BOX = "box_gpus: {model: rtx5090, count: 1}\nbox_deployments:" + DEPLOYMENT
UNREACHABLE = {"kind": "unreachable", "message": "ssh: connect to host box1 port 22: No route to host"}


def kept(number, speed, at_once):
    """A run as a host keeps it, three repeats of nearly this speed."""
    repeats = [
        {
            "engine": {
                "median_tpot_ms": 1000 / (speed * share),
                "output_throughput": at_once * speed * share,
                "median_ttft_ms": 12.0,
                "completed": 4,
                "total_output_tokens": 64,
            },
            "counted": {},
            "cards": [],
        }
        for share in (0.995, 1.0, 1.004)
    ]
    point = {"concurrency": at_once, "context": None, "requests": 4, "repeats": repeats, "failed": None}
    return {"id": f"run{number}", "deployment": "qwen", "release": f"r{number}", "points": [point]}


class FakeBox:
    """Answers the playbooks. speed: options -> tokens a second, or a failure of the run."""

    def __init__(self):
        self.speed = lambda options: 50.0
        self.calls, self.tried, self.given = [], [], {}
        self.releases = {"aaa111": None}
        self.begin_failure = self.end_failure = None
        self.off, self.by_host, self.begun = set(), {}, lambda host: None

    def play(self, playbook, names, paths, *, quiet=False, variables=None):
        (host,) = names
        self.calls.append(playbook)
        self.by_host.setdefault(host, []).append(playbook)
        self.given[playbook] = variables
        if host in self.off:
            return RunReport(4, 1.0, {host: HostReport(host, failure=UNREACHABLE)})
        report = HostReport(host, failure={"kind": "failed", "message": "?"})
        if playbook == "tune_begin.yml":
            found = {"origin": "aaa111", "releases": self.releases}
            report = HostReport(host, results={"host_facts": [{"raw": {}}], "engine_trial": [found]})
            if self.begin_failure:
                report = HostReport(host, results={"host_facts": [{"raw": {}}]}, failure=self.begin_failure)
        elif playbook == "tune_try.yml":
            self.begun(host)
            report = self._try(host, variables)
        elif self.end_failure:
            report = HostReport(host, failure=self.end_failure)
        else:
            report = HostReport(host, results={"engine_trial": [{"serves": True, "removed": []}]})
        return RunReport(0, 1.0, {host: report})

    def _try(self, host, variables):
        options = {
            **variables["tune_changes"]["options"],
            **{name: value for name, value in variables.items() if name.startswith("gpu_tuning_")},
        }
        self.tried.append(options)
        speed = self.speed(options)
        if isinstance(speed, BaseException):
            raise speed
        if isinstance(speed, dict):
            return HostReport(host, failure=speed)
        (at_once,) = variables["bench_concurrencies"]
        return HostReport(host, results={"engine_bench": [{"run": kept(len(self.tried), speed, at_once)}]})


@pytest.fixture
def box(monkeypatch, tmp_path):
    (tmp_path / "inv" / "host_vars").mkdir(parents=True)
    (tmp_path / "inv" / "hosts.yml").write_text("all: {hosts: {box1: {}, box2: {}}}\n")
    (tmp_path / "inv" / "host_vars" / "box1.yml").write_text(BOX)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    found = FakeBox()
    found.inventory = [str(tmp_path / "inv")]
    monkeypatch.setattr(trials, "play", found.play)

    def facts(raw, host):
        declared = judged_box(host, {"box_gpus": {"model": "rtx5090", "count": 1}})
        return planner.offline_facts(declared, catalog.load())

    monkeypatch.setattr(trials.host_facts, "parse", facts)
    return found


@pytest.fixture
def tune(box, capsys):
    def call(what="kv,batched_tokens", **options):
        words = {name: options.pop(name) for name in ("deployment",) if name in options}
        status = 0
        try:
            tuning.tune(["box1"], box.inventory, what=what, wanted=tune_wish.asked(**options), **words)
        except SystemExit as error:
            status = error.code
        said = capsys.readouterr()
        return status, said.out, said.err

    return call


@pytest.fixture
def bisect(box, capsys):
    def call(good, bad="declared", **options):
        status = 0
        try:
            bisecting.bisect(
                ["box1"], box.inventory, good=str(good), bad=str(bad), wanted=tune_wish.asked(**options)
            )
        except SystemExit as error:
            status = error.code
        said = capsys.readouterr()
        return status, said.out, said.err

    return call


def test_a_planted_better_setting_is_found_with_the_lines_to_declare(box, tune):
    box.speed = lambda options: 120 if options.get("max_batched_tokens") == 8192 else 50
    status, out, _ = tune()
    assert status == 0
    assert "better: max_batched_tokens: 8192 (+140%, 50 to 120)" in out
    assert "    max_batched_tokens: 8192\n" in out
    assert "host_vars/box1.yml:2" in out
    assert "serving   release aaa111, as before" in out
    assert max(map(len, out.splitlines())) <= 100
    assert (box.calls[0], box.calls[-1]) == ("tune_begin.yml", "tune_end.yml")
    # What was declared is measured first; one kind after the other, upon the best so far.
    assert box.tried[0] == {}
    assert {"kv_cache": "auto"} in box.tried


def test_for_programs(box, tune):
    box.speed = lambda options: 120 if options.get("kv_cache") == "auto" else 50
    status, out, _ = tune(as_json=True)
    found = json.loads(out)["box1"]
    assert (status, found["better"], found["declare"]) == (0, True, {"kv_cache": "auto"})
    assert found["lines"] == ["kv_cache: auto"]
    assert found["restored"] is True
    assert found["tried"][0]["taken"] is True
    assert found["change"]["change"] == pytest.approx(1.4)


def test_nothing_better_is_said_so(box, tune):
    status, out, _ = tune()
    assert "nothing tried is better than what is declared by more than noise" in out
    assert status == 0


def test_limits_of_the_cards_are_tried_as_the_roles_own_variables(box, tune):
    box.speed = lambda options: 50
    tune("power", objective="decode")
    assert box.tried[1] == {"gpu_tuning_power_limit_w": 400}


def test_what_serves_no_text_by_its_files_is_not_tuned(box, tune, monkeypatch, tmp_path):
    declared = "{name: qwen, model: {repo: org/name}, image: 'vllm/vllm-openai:v0.29.0'}"
    (tmp_path / "inv" / "host_vars" / "box1.yml").write_text(
        f"box_gpus: {{model: rtx5090, count: 1}}\nbox_deployments: [{declared}]\n"
    )
    sizes = {"num_hidden_layers": 2, "hidden_size": 128, "num_attention_heads": 4, "intermediate_size": 256}
    config = {"architectures": ["BertModel"], "model_type": "bert", "vocab_size": 300, **sizes}
    model = {"request": "org/name", "origin": "hub", "repo": "org/name", "revision": "a" * 40}
    model["config"] = {**config, "max_position_embeddings": 512}
    model["files"] = [{"path": "model.safetensors", "size": 4000000}]
    system = {"id": "debian", "version_id": "13", "codename": "trixie", "architecture": "x86_64"}
    system["kernel"] = "6.12"

    def facts(raw, host):
        box1 = judged_box(host, {"box_gpus": {"model": "rtx5090", "count": 1}})
        plain = planner.offline_facts(box1, catalog.load()).to_json()
        return HostFacts.from_json({**plain, "recorded": True, "os": system, "models": [model]})

    monkeypatch.setattr(trials.host_facts, "parse", facts)
    with pytest.raises(UserError) as error:
        tune()
    assert error.value.what.startswith("qwen serves embeddings, and the benchmark measures")
    assert (box.calls[0], box.calls[-1]) == ("tune_begin.yml", "tune_end.yml")
    assert not box.tried


def test_one_that_the_box_refuses_or_that_fails_is_told_and_the_others_go_on(box, tune):
    def speed(options):
        if options.get("kv_cache") == "auto":
            return {"kind": "failed", "role": "engine", "message": "qwen: release b does not serve: crashed"}
        if options.get("max_batched_tokens") == 8192:
            return {"kind": "refused", "message": "box1: refused, nothing was changed\n\n  no-room"}
        return 90 if options.get("max_batched_tokens") == 2048 else 50

    box.speed = speed
    status, out, _ = tune()
    assert status == 0
    assert "failed    kv_cache: auto: qwen: release b does not serve: crashed" in out
    assert "refused   max_batched_tokens: 8192: box1: refused, nothing was changed no-room" in out
    assert "better: max_batched_tokens: 2048" in out


def test_ctrl_c_brings_the_box_back_and_the_next_run_carries_on(box, tune):
    def speed(options):
        return KeyboardInterrupt() if len(box.tried) == 3 else 50

    box.speed = speed
    with pytest.raises(KeyboardInterrupt):
        tune()
    assert box.calls[-1] == "tune_end.yml"
    box.speed, before = (lambda options: 50), list(box.tried)
    _, out, _ = tune()
    assert "carries on from" in out
    assert "2 measurements of then hold" in out
    assert box.tried[3:5] != before[:2]
    # The declared one again, by which is seen that the rest of then still holds.
    assert (box.tried[3], box.tried[4:].count({})) == ({}, 0)
    assert before[1] not in box.tried[4:]
    # One that came to its end is not carried on.
    count = len(box.tried)
    tune()
    assert box.tried[count] == {}


def test_what_was_measured_on_a_busier_box_does_not_hold(box, tune):
    """Its figures would stand beside those of the idle box, and the idle one's settings look better."""
    box.speed = lambda options: KeyboardInterrupt() if len(box.tried) == 3 else 20
    with pytest.raises(KeyboardInterrupt):
        tune()
    box.speed, before = (lambda options: 50), list(box.tried)
    _, out, _ = tune()
    assert "is not as fast as it was then, so nothing that was measured then holds" in " ".join(out.split())
    assert box.tried[3:5] == before[:2]
    assert "better:" not in out


def test_fresh_and_another_declaration_measure_all_anew(box, tune, tmp_path):
    def speed(options):
        return KeyboardInterrupt() if len(box.tried) == 2 else 50

    for again in ({"fresh": True}, {}):
        box.tried.clear()
        box.speed = speed
        with pytest.raises(KeyboardInterrupt):
            tune()
        box.speed = lambda options: 50
        if not again:
            (tmp_path / "inv" / "host_vars" / "box1.yml").write_text(BOX.replace("32768", "16384"))
        box.tried.clear()
        _, out, _ = tune(**again)
        assert "carries on" not in out
        assert box.tried[0] == {}


def test_a_box_that_goes_away_is_told_with_its_own_way_back(box, tune, capsys):
    box.speed = lambda options: UNREACHABLE if options else 50
    box.end_failure = UNREACHABLE
    with pytest.raises(UserError) as error:
        tune()
    assert "box1" in str(error.value)
    said = capsys.readouterr().err
    assert "could not be told to go back" in said
    assert "a timer of its own takes it back within 15 minutes" in said


def test_where_nothing_serves_any_more_it_stops_at_once(box, tune):
    text = "qwen: release b does not serve\nNOTHING SERVES qwen NOW: the release before it did not come back"
    box.speed = lambda options: {"kind": "failed", "role": "engine", "message": text} if options else 50
    with pytest.raises(UserError, match="NOTHING SERVES qwen NOW"):
        tune()
    assert len(box.tried) == 2
    assert box.calls[-1] == "tune_end.yml"


def test_a_way_back_that_failed_is_a_failure(box, tune):
    box.end_failure = {"kind": "failed", "message": "NOTHING SERVES qwen NOW"}
    status, out, err = tune()
    assert status == 1
    assert "the box could not be brought back as it was" in out
    assert "the release that served before does not serve again" in err
    assert "NOTHING SERVES qwen NOW" in err


def test_it_is_one_run_in_the_history_of_the_box(box, tune):
    box.speed = lambda options: 80 if options else 50
    tune(what="kv")
    begin, end = (box.given[f"tune_{name}.yml"] for name in ("begin", "end"))
    assert begin[runs.VARIABLE] == end[runs.VARIABLE]
    assert (begin[runs.VARIABLE]["verb"], begin[runs.VARIABLE]["options"]) == ("tune", [])
    assert runs.VARIABLE not in box.given["tune_try.yml"]
    tried, best = end[runs.VERB]["did"]
    assert tried.endswith(f"tried: {len(box.tried)} measured")
    assert best.startswith("better: ")
    assert "+60%" in best
    line = runs.ended(end[runs.VARIABLE], {}, (), end[runs.VERB])
    assert (line["outcome"], line["did"]) == ("ok", [tried, best])


def test_what_ended_it_early_is_in_the_history(box, tune):
    box.speed = lambda options: KeyboardInterrupt() if options else 50
    with pytest.raises(KeyboardInterrupt):
        tune(what="kv")
    line = runs.ended({}, {}, (), box.given["tune_end.yml"][runs.VERB])
    assert (line["outcome"], line["failure"]["message"]) == ("failed", "stopped by hand")


def test_the_end_is_kept_here_where_the_box_went_away(box, tune):
    box.end_failure = {"kind": "unreachable", "message": "No route to host", "role": None, "task": "t"}
    tune(what="kv")
    (line,) = lost_runs.kept(lost_runs.place("box1", {}))
    assert line["run"] == box.given["tune_begin.yml"][runs.VARIABLE]["run"]
    assert (line["outcome"], line["failure"]["message"]) == ("failed", "No route to host")


@pytest.mark.parametrize(
    "planted",
    ["", "[]", "{}", '{"format": 1}', "[" * 100_000, "TORN", "TRIALS", "ENTRY", "RUNS"],
)
def test_a_journal_that_is_none_is_begun_anew(tmp_path, monkeypatch, planted):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    tried = Trial(Candidate({"kv_cache": "fp8"}, "kv"), "failed", seconds=1.0, why="it crashed")
    first = Journal("tune", "box1", "qwen", {}, fresh=False)
    first.put(tried, [])
    whole = json.loads(first.path.read_text())
    key = next(iter(whole["trials"]))
    texts = {
        "TORN": first.path.read_text()[:-20],
        "TRIALS": json.dumps({**whole, "trials": [1]}),
        "ENTRY": json.dumps({**whole, "trials": {key: {"status": "failed"}}}),
        "RUNS": json.dumps({**whole, "trials": {key: {**whole["trials"][key], "runs": [1]}}}),
    }
    assert Journal("tune", "box1", "qwen", {}, fresh=False).get(tried.candidate) == tried
    first.path.write_text(texts.get(planted, planted))
    again = Journal("tune", "box1", "qwen", {}, fresh=False)
    assert again.get(tried.candidate) is None
    assert again.resumed == ""


def test_a_host_that_was_not_provisioned_says_so(box, tune):
    box.begin_failure = {"kind": "failed", "role": "engine", "message": "no release of qwen has served yet"}
    with pytest.raises(UserError) as error:
        tune()
    assert "./invoke provision --host box1" in str(error.value)
    assert box.calls == ["tune_begin.yml"]


def test_a_declaration_that_cannot_be_measured_says_why(box, tune):
    box.speed = lambda options: {"kind": "failed", "role": "engine", "message": "it crashed"}
    with pytest.raises(UserError, match="what is declared could not be measured") as error:
        tune()
    assert error.value.why == "it crashed"
    assert box.calls[-1] == "tune_end.yml"


def test_a_failure_that_says_nothing_of_the_setting_is_tried_again(box, tune):
    busy = {"kind": "failed", "role": None, "message": "qwen has 2 requests of others in hand"}
    crash = {"kind": "failed", "role": "engine", "message": "it crashed"}
    stop = [True]

    def speed(options):
        if options == {"kv_cache": "auto"}:
            return crash
        if options.get("max_batched_tokens") == 8192:
            return busy if stop else 50
        return KeyboardInterrupt() if stop and options else 50

    box.speed = speed
    with pytest.raises(KeyboardInterrupt):
        tune()
    stop.clear()
    box.tried.clear()
    tune()
    assert {"max_batched_tokens": 8192} in box.tried
    assert {"kv_cache": "auto"} not in box.tried
    assert box.tried.count({}) == 1


def test_a_base_that_failed_is_measured_anew_the_next_time(box, tune):
    box.speed = lambda options: {"kind": "failed", "role": "engine", "message": "it crashed"}
    with pytest.raises(UserError):
        tune()
    box.speed = lambda options: 50
    status, out, _ = tune()
    assert status == 0
    assert "carries on" not in out


def test_bounds_of_number_and_time(box, tune):
    _, out, _ = tune(candidates="1")
    assert "1 candidates were tried (--candidates)" in out
    assert len({str(one) for one in box.tried}) == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"what": "sequence"}, "cannot be varied"),
        ({"what": ","}, "cannot be varied"),
        ({"deployment": "qwem"}, 'no deployment is named "qwem"'),
        ({"objective": "latency"}, "--objective"),
        ({"candidates": "0"}, "--candidates 0"),
        ({"minutes": "x"}, "--minutes x"),
        ({"concurrency": "-1"}, "--concurrency -1"),
        ({"context": "4096"}, "--context is the length of the prompts for --objective prefill"),
        ({"picture": "a.png"}, "the picture is an SVG"),
    ],
)
def test_what_makes_no_sense_is_said_before_anything_is_asked(box, tune, options, said):
    with pytest.raises(UserError) as error:
        tune(**options)
    assert said in str(error.value)
    assert error.value.status == 2
    assert box.calls == []


@pytest.fixture
def several(box, tmp_path, capsys):
    """A tuning of three boxes, of which the third is off."""
    for name in ("box2", "box3"):
        (tmp_path / "inv" / "host_vars" / f"{name}.yml").write_text(BOX)
    (tmp_path / "inv" / "hosts.yml").write_text("all: {hosts: {box1: {}, box2: {}, box3: {}, box4: {}}}\n")
    (tmp_path / "inv" / "host_vars" / "box4.yml").write_text("box_gpus: {model: rtx5090, count: 1}\n")
    box.off = {"box3"}

    def call(work=None, **options):
        status = 0
        try:
            if work:
                work(tune_wish.asked(**options))
            else:
                wanted = tune_wish.asked(**options)
                tuning.tune([], box.inventory, every=True, what="kv,batched_tokens", wanted=wanted)
        except SystemExit as error:
            status = error.code
        return status, *capsys.readouterr()

    return call


def test_several_boxes_are_tuned_at_once_and_one_that_is_off_holds_up_none(box, several):
    together = threading.Barrier(2, timeout=60)

    def begun(host):
        if box.by_host[host].count("tune_try.yml") == 1:
            together.wait()

    box.begun = begun
    box.speed = lambda options: 80 if options.get("max_batched_tokens") == 2048 else 50
    status, out, _ = several(as_json=True)
    found = json.loads(out)
    assert (status, set(found)) == (1, {"box1", "box2", "box3"})
    for name in ("box1", "box2"):
        assert (found[name]["failure"], found[name]["restored"]) == (None, True)
        assert found[name]["declare"] == {"max_batched_tokens": 2048}
        assert box.by_host[name][-1] == "tune_end.yml"
    assert "No route to host" in found["box3"]["failure"]
    box.begun = lambda host: None
    status, out, err = several()
    assert status == 1
    assert "box1: better: max_batched_tokens: 2048" in out
    assert "box2: better: max_batched_tokens: 2048" in out
    assert "box3: could not be tuned: " in err


def test_several_boxes_are_bisected_at_once(box, several, tmp_path):
    good = good_file(tmp_path, max_batched_tokens=2048)
    box.speed = lambda options: 50 if options.get("max_batched_tokens", 4096) == 2048 else 25

    def work(wanted):
        bisecting.bisect([], box.inventory, every=True, good=str(good), wanted=wanted)

    status, out, _ = several(work, as_json=True, candidates="24")
    found = json.loads(out)
    assert status == 1
    for name in ("box1", "box2"):
        assert [one["options"] for one in found[name]["culprits"]] == [["max_batched_tokens"]]


def test_a_way_back_that_failed_on_one_of_several_is_a_failure(box, several):
    box.off = set()
    box.end_failure = {"kind": "failed", "message": "it does not start"}
    status, out, _ = several(as_json=True)
    assert (status, {one["restored"] for one in json.loads(out).values()}) == (1, {False})


def test_ctrl_c_brings_all_of_several_boxes_back(box, several):
    """It reaches the main thread alone; each of the others has to hear of it, and goes back."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    both = threading.Barrier(2, action=lambda: os.kill(os.getpid(), signal.SIGINT), timeout=60)

    def begun(host):
        if box.by_host[host].count("tune_try.yml") == 2:
            both.wait()
            until = time.monotonic() + 30
            while time.monotonic() < until:
                interrupts.check()
                time.sleep(0.01)

    box.off, box.begun = {"box3"}, begun
    try:
        with pytest.raises(KeyboardInterrupt):
            several()
    finally:
        signal.signal(signal.SIGINT, before)
    for name in ("box1", "box2"):
        assert box.by_host[name].count("tune_try.yml") == 2
        assert box.by_host[name][-1] == "tune_end.yml"


def test_the_picture_is_written(box, tune, tmp_path):
    tune(picture=str(tmp_path / "a.svg"))
    assert "<svg" in (tmp_path / "a.svg").read_text()


# -- which option costs the speed ---------------------------------------------------------------------------


def good_file(tmp_path, **lines):
    text = DEPLOYMENT + "".join(f"    {name}: {value}\n" for name, value in lines.items())
    path = tmp_path / "good.yml"
    path.write_text("box_deployments:" + text)
    return path


def test_a_planted_slow_option_is_named_with_its_cost(box, bisect, tmp_path):
    (tmp_path / "inv" / "host_vars" / "box1.yml").write_text(
        BOX
        + "    extra_args: {enforce-eager: true}\n    env: {NCCL_DEBUG: INFO}\n    prefix_caching: false\n"
    )

    def speed(options):
        return 100 if options.get("extra_args.enforce-eager", "left") is None else 25

    box.speed = speed
    status, out, _ = bisect(good_file(tmp_path))
    assert status == 0
    assert "they differ in 3" in out
    assert "extra_args.enforce-eager: true costs 75%" in out
    assert "the good side has extra_args.enforce-eager left out" in " ".join(out.split())
    assert "what else they differ in costs nothing beyond noise" in out
    assert max(map(len, out.splitlines())) <= 100
    assert box.calls[-1] == "tune_end.yml"


def test_a_release_is_a_side_where_it_says_how_it_was_declared(box, bisect):
    box.releases = {"aaa111": None, "bbb222": {"model": "qwen3.8-27b-int4", "kv_cache": "fp8",
                    "image": "vllm/vllm-openai:v0.29.0", "context": 32768, "concurrency": 4}}  # fmt: skip
    box.speed = lambda options: 100 if options.get("max_batched_tokens", "x") is None else 50
    _, out, _ = bisect("bbb", as_json=True)
    found = json.loads(out)["box1"]
    assert [one["options"] for one in found["culprits"]] == [["max_batched_tokens"]]
    assert found["differences"] == {"max_batched_tokens": {"good": None, "bad": 4096}}
    with pytest.raises(UserError, match="aaa111 does not say how it was declared"):
        bisect("aaa111")
    with pytest.raises(UserError, match="is no file, and no release of qwen begins so"):
        bisect("zzz")


def test_no_difference_and_sides_that_are_exchanged_are_said(box, bisect, tmp_path):
    path = good_file(tmp_path, prefix_caching="false")
    _, out, _ = bisect(path)
    assert "no difference" in out
    box.speed = lambda options: 25 if options.get("prefix_caching") is False else 50
    _, out, _ = bisect(path, fresh=True)
    assert "the bad side is the faster one" in out


@pytest.mark.parametrize(
    ("limits", "differences"),
    [
        ("", {"prefix_caching"}),
        ("gpu_tuning_power_limit_w: 400\n", {"prefix_caching"}),
        ("gpu_tuning_power_limit_w: 450\n", {"prefix_caching", "gpu_tuning_power_limit_w"}),
        ("gpu_tuning_max_clock_mhz: 2100\n",
         {"prefix_caching", "gpu_tuning_power_limit_w", "gpu_tuning_max_clock_mhz"}),
    ],
)  # fmt: skip
def test_a_file_without_limits_leaves_them_as_declared(box, bisect, tmp_path, limits, differences):
    declared = BOX + "    prefix_caching: false\ngpu_tuning_power_limit_w: 400\n"
    (tmp_path / "inv" / "host_vars" / "box1.yml").write_text(declared)
    path = good_file(tmp_path)
    path.write_text(path.read_text() + limits)
    _, out, _ = bisect(path, as_json=True)
    assert set(json.loads(out)["box1"]["differences"]) == differences


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("box_deployments:" + DEPLOYMENT, "declare the same, so there is nothing to bisect"),
        ("a: [", "cannot be read"),
        ("[1, 2]", "does not declare qwen"),
        ("box_gpus: {model: rtx5090}", "does not declare qwen"),
        ("model: qwen3.8-27b-int4\nimage: a:b\nconcurency: 3", "concurency"),
    ],
)
def test_sides_that_say_nothing(box, bisect, tmp_path, text, said):
    path = tmp_path / "side.yml"
    path.write_text(text)
    with pytest.raises((UserError, SpecErrors)) as error:
        bisect(path)
    assert said in str(error.value)
    assert box.tried == []


def test_sides_need_bisect_and_bisect_needs_a_side(box):
    with pytest.raises(UserError, match="--good is the faster one"):
        bisecting.bisect(["box1"], box.inventory, good="", wanted=tune_wish.asked())
    with pytest.raises(UserError, match="two sides of --bisect"):
        tune_wish.refuse_sides("x", "declared")
    with pytest.raises(UserError, match="--what is not for --bisect"):
        tune_wish.refuse_what("kv")
