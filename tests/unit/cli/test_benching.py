"""The verb bench: table, JSON, picture, comparison and exit statuses, on a run that was recorded."""

import copy
import json
from pathlib import Path

import pytest

from boxwright.bench.run import prompts
from boxwright.cli import benching
from boxwright.cli.ansible_run import HostReport, RunReport
from boxwright.errors import UserError

KEPT = json.loads((Path(__file__).parents[1] / "bench" / "recorded" / "kept.json").read_text())


@pytest.fixture
def called(monkeypatch, tmp_path):
    """What playbooks were run with; what they find is `found`, host -> module -> result."""
    (tmp_path / "hosts.yml").write_text("all: {hosts: {box1: {}, box2: {}}}\n")
    calls = {"found": {}, "variables": [], "inventory": [str(tmp_path)]}

    def play(playbook, names, paths, **options):
        calls["variables"].append(options.get("variables"))
        off = {"kind": "unreachable", "message": "ssh: connect to host box2 port 22: No route to host"}
        hosts = {
            name: HostReport(
                name, results=calls["found"].get(name, {}), failure=off if name == "box2" else None
            )
            for name in names
        }
        return RunReport(0, 1.0, hosts)

    monkeypatch.setattr(benching, "play", play)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    calls["found"]["box1"] = {"engine_bench": [{"run": KEPT, "path": "/var/lib/boxwright/bench/qwen/a.json"}]}
    return calls


def bench(called, capsys, *hosts, **options):
    status = 0
    try:
        benching.bench(list(hosts or ("box1",)), called["inventory"], **options)
    except SystemExit as error:
        status = error.code
    return status, capsys.readouterr().out


def test_a_table_a_point_within_the_page_and_the_engines_figures(called, capsys):
    status, out = bench(called, capsys)
    assert status == 0
    assert max(map(len, out.splitlines())) <= 100
    engine = KEPT["points"][0]["repeats"][0]["engine"]
    assert "requests at once" in out
    assert "tokens of context" in out
    assert f"release {KEPT['release']}" in out
    assert engine["median_ttft_ms"] > 0
    assert "software power cap 100%" in out
    assert "prompt tokens came from the prefix cache" in out
    assert "the plan's" in out
    assert "box1:/var/lib/boxwright/bench/qwen/a.json" in out
    assert "\033[" not in out


def test_what_the_playbook_is_given(called, capsys):
    bench(called, capsys, concurrency="1,2, 2", context="none", repeats="5", output="64", minutes="3")
    [given] = called["variables"]
    assert given["bench_concurrencies"] == [1, 2]
    assert given["bench_contexts"] == [0]
    assert (given["bench_repeats"], given["bench_output_tokens"], given["bench_limit_s"]) == (5, 64, 180)
    assert given["bench_prompts"] == prompts()
    assert "bench_deployment" not in given


@pytest.mark.parametrize(
    "options",
    [
        {"concurrency": "1,x"},
        {"context": "0"},
        {"repeats": "0"},
        {"minutes": "-1"},
        {"output": "1e3"},
        {"picture": "sweep.png"},
        {"picture": "/nowhere/at/all/sweep.svg"},
    ],
)
def test_wrong_input_begins_nothing(called, capsys, options):
    with pytest.raises(UserError) as error:
        benching.bench(["box1"], called["inventory"], **options)
    assert error.value.status == 2
    assert called["variables"] == []


def test_json_has_figures_plan_and_every_repeat(called, capsys):
    status, out = bench(called, capsys, "box1", "box2", as_json=True)
    assert status == 1
    found = json.loads(out)
    assert "box2" in found
    assert "No route to host" in found["box2"]["failure"]
    one = found["box1"]
    assert one["failure"] is None
    assert one["kept"] == "/var/lib/boxwright/bench/qwen/a.json"
    point = one["points"][0]
    assert len(point["repeats"]) == len(KEPT["points"][0]["repeats"])
    values = sorted(entry["engine"]["output_throughput"] for entry in KEPT["points"][0]["repeats"])
    assert point["figures"]["output_tokens_per_s"]["low"] == values[0]
    assert point["figures"]["output_tokens_per_s"]["high"] == values[-1]
    assert {entry["what"] for entry in one["expected"]} == {"decode", "prefill"}


def test_the_picture_is_written(called, capsys, tmp_path):
    path = tmp_path / "sweep.svg"
    status, out = bench(called, capsys, picture=str(path))
    assert status == 0
    assert path.read_text().startswith("<svg")
    assert str(path) in out


def slower(share):
    """The recorded run as it would be on a box that is slower by so much, with five repeats."""
    run = copy.deepcopy(KEPT)
    run["id"] = f"20261201T070000Z-{run['release']}"
    for point in run["points"]:
        point["repeats"] = [copy.deepcopy(point["repeats"][0]) for _ in range(5)]
        for number, repeat in enumerate(point["repeats"]):
            for name in ("median_tpot_ms", "median_ttft_ms", "median_itl_ms"):
                repeat["engine"][name] *= (1 + share) * (1 + 0.001 * number)
    return run


def test_comparing_tells_the_verdict_and_the_statistic(called, capsys):
    first, second = slower(0), slower(0.2)
    first["id"] = "20261130T070000Z-" + first["release"]
    found = {"deployment": "qwen", "runs": [], "found": {"20261130": [first], "last": [second]}}
    called["found"]["box1"] = {"bench_runs": [found]}
    benching.comparing(["box1"], called["inventory"], first="20261130")
    out = capsys.readouterr().out
    assert "Welch" in out
    assert "worse" in out
    assert "+20.0%" in out
    assert max(map(len, out.splitlines())) <= 100
    benching.comparing(["box1"], called["inventory"], first="20261130", as_json=True)
    told = json.loads(capsys.readouterr().out)["box1"]
    verdicts = {(one["figure"], one["verdict"]) for one in told["differences"]}
    assert ("decode_tokens_per_s", "worse") in verdicts
    assert ("output_tokens_per_s", "noise") in verdicts


def test_a_run_is_not_compared_with_itself(called):
    found = {"deployment": "qwen", "runs": [], "found": {"last": [KEPT], KEPT["id"]: [KEPT]}}
    called["found"]["box1"] = {"bench_runs": [found]}
    with pytest.raises(UserError, match="the same run"):
        benching.comparing(["box1"], called["inventory"], first=KEPT["id"])


def test_a_word_that_means_no_run(called):
    called["found"]["box1"] = {
        "bench_runs": [{"deployment": "qwen", "runs": [], "found": {"x": [], "last": []}}]
    }
    with pytest.raises(UserError, match="no run of qwen") as error:
        benching.comparing(["box1"], called["inventory"], first="x")
    assert error.value.status == 2


def test_kept_runs_are_listed_and_shown_again(called, capsys):
    head = {name: KEPT.get(name) for name in ("id", "deployment", "release", "image", "made", "seconds")}
    found = {"deployment": "qwen", "runs": [head], "found": {"last": [KEPT]}}
    called["found"]["box1"] = {"bench_runs": [found]}
    benching.runs(["box1"], called["inventory"])
    assert KEPT["id"] in capsys.readouterr().out
    benching.runs(["box1"], called["inventory"], show="last")
    assert "requests at once" in capsys.readouterr().out


def test_a_box_that_is_off_is_told_and_holds_nobody_up(called, capsys):
    status, out = bench(called, capsys, "box1", "box2")
    assert status == 1
    assert "requests at once" in out


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"against": "abc"}, "--against is the other side of --compare"),
        ({"runs": True, "compare": "abc"}, "--runs and --compare: one at a time"),
        ({"show": "last", "compare": "abc"}, "--show and --compare: one at a time"),
        ({"runs": True, "picture": "x.svg"}, "--picture draws one run"),
        ({"compare": "abc", "picture": "x.svg"}, "--picture draws one run"),
    ],
)
def test_options_of_which_one_would_be_forgotten(given, said):
    words = {"runs": False, "show": "", "compare": "", "against": "last", "picture": "", **given}
    with pytest.raises(UserError, match=said) as error:
        benching.refuse_mixture(**words)
    assert error.value.status == 2


def test_options_that_go_together():
    for given in ({"show": "last", "picture": "x.svg"}, {"compare": "a", "against": "b"}, {"runs": True}):
        words = {"runs": False, "show": "", "compare": "", "against": "last", "picture": "", **given}
        benching.refuse_mixture(**words)
    benching.refuse_mixture(runs=True, show="last", compare="", against="last", picture="")
