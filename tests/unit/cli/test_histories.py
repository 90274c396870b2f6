"""The verb history, and what a controller says of itself."""

import json
import os
import platform
import subprocess

import pytest

from boxwright.ansible import lost_runs
from boxwright.cli import histories, recording
from boxwright.cli.ansible_run import HostReport, RunReport
from boxwright.errors import UserError

OFF = {"kind": "unreachable", "message": "ssh: connect to host box2 port 22: No route to host", "role": None}


def lines(run, outcome="ok", **more):
    start = {
        "event": "begun",
        "run": run,
        "verb": "provision",
        "user": "me",
        "controller": "desk",
        "process": 1,
        "at": 1_700_000_000,
        "inventory": [{"name": "local", "commit": "c0ffee" * 6, "edited": True}],
    }
    end = {"event": "ended", "run": run, "at": 1_700_000_061, "outcome": outcome, **more}
    return [json.dumps(start), *([json.dumps(end)] if outcome else [])]


@pytest.fixture
def show(monkeypatch, tmp_path, capsys):
    """Run the verb on boxes with these lines (None: off): status and streams."""
    inventory = tmp_path / "inventory"
    inventory.mkdir()
    (inventory / "hosts.yml").write_text("all: {hosts: {box1: {}, box2: {}, box3: {}}}\n")

    def call(boxes, **options):
        hosts = {
            name: HostReport(name, results={} if one is None else {"run_history": [{"lines": one}]},
                             failure=OFF if one is None else None)
            for name, one in boxes.items()
        }  # fmt: skip
        monkeypatch.setattr(histories, "play", lambda *_, **__: RunReport(0, 1.0, hosts))
        status = 0
        try:
            histories.history(list(boxes), [str(inventory)], **options)
        except SystemExit as error:
            status = error.code
        return status, capsys.readouterr()

    return call


def test_the_end_of_a_run_whose_box_went_away_is_known_here(show, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    failure = {"role": "engine", "task": "t", "message": "No route to host"}
    (end,) = lines("a", "failed", failure=failure)[1:]
    lost_runs.keep(lost_runs.place("box1", {}), json.loads(end))
    status, shown = show({"box1": lines("a", None)})
    assert status == 0
    assert "failed at engine: No route to host" in shown.out
    # Nobody has it of a box that has no such run.
    assert "no run is recorded there" in show({"box1": []})[1].out


def test_a_line_with_a_number_that_no_process_has_is_no_fault(show):
    start = json.loads(lines("a", None)[0]) | {"controller": platform.node(), "process": 10**11}
    assert "killed" in show({"box1": [json.dumps(start)]})[1].out


def test_a_row_a_run_the_newest_first(show):
    step = {"deployment": "qwen", "before": "aaaaaaaaaaaa", "after": "bbbbbbbbbbbb"}
    failure = {"role": "engine", "task": "t", "message": "out of memory"}
    told = [
        *lines("a", changed={"engine": 2}, releases=[step], did=["qwen serves release bbbbbbbbbbbb"]),
        *lines("b", "failed", failure=failure),
        *lines("c", None),
    ]
    status, said = show({"box1": told})
    out = said.out.splitlines()
    assert status == 0
    assert [line.split()[-1] for line in out[1:3]] == ["ended", "failed"]
    assert "me@desk" in out[3]
    assert "c0ffeec0+" in out[3]
    text = " ".join(said.out.split())
    assert "engine 2; qwen: release aaaaaaaaaaaa -> bbbbbbbbbbbb" in text
    assert "serves release" not in text
    assert "failed at engine: out of memory" in text


def test_a_box_that_is_off_or_new_holds_nobody_up(show):
    status, said = show({"box1": lines("a"), "box2": None, "box3": []})
    assert status == 1
    assert "box1" in said.out
    assert "box3: no run is recorded there" in said.out
    assert "box2: could not be looked at" in said.err


def test_json_has_the_same(show):
    status, said = show({"box1": lines("a") + lines("b"), "box2": None}, as_json=True, last="1")
    found = json.loads(said.out)
    assert status == 1
    assert [one["id"] for one in found["box1"]["runs"]] == ["b"]
    assert found["box1"]["runs"][0]["inventory"][0]["edited"] is True
    assert "No route to host" in found["box2"]["failure"]


def test_no_text_of_a_box_can_draw_on_the_terminal(show):
    bad = lines("a", "failed", failure={"role": None, "task": "t", "message": "\033[2Jgone"})
    assert "\033" not in show({"box1": bad})[1].out


def test_what_is_no_number(show):
    with pytest.raises(UserError, match="--last"):
        show({"box1": []}, last="all")


def git(directory, *words):
    subprocess.run(["git", "-C", str(directory), "-c", "user.name=x", "-c", "user.email=x@x", *words],
                   check=True, capture_output=True, timeout=30)  # fmt: skip


def test_the_commit_of_an_inventory(tmp_path, needs_git):
    own = tmp_path / "inventory"
    own.mkdir()
    assert recording.checkout(own) is None
    git(tmp_path, "init", "--quiet")
    (own / "hosts.yml").write_text("all:\n")
    assert recording.checkout(own) is None
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "first")
    found = recording.checkout(own)
    assert (found["name"], len(found["commit"]), found["edited"]) == ("inventory", 40, False)
    (own / "hosts.yml").write_text("all: {}\n")
    assert recording.checkout(own / "hosts.yml")["edited"] is True
    (tmp_path / ".gitignore").write_text("/local\n")
    (tmp_path / "local").mkdir()
    (tmp_path / "local" / "hosts.yml").write_text("all:\n")
    assert recording.checkout(tmp_path / "local") is None


def test_who_runs_it(monkeypatch, tmp_path):
    monkeypatch.setenv("SUDO_USER", "someone")
    found = recording.recorded("rollback", [tmp_path], ["--to"])["boxwright_run"]
    assert (found["user"], found["verb"], found["process"]) == ("someone", "rollback", os.getpid())
    assert found["run"] != recording.run("rollback", [])["run"]


def test_whether_a_process_lives():
    here = platform.node()
    assert recording.alive(here, os.getpid()) is True
    done = subprocess.Popen(["true"])
    done.wait()
    assert recording.alive(here, done.pid) is False
    assert recording.alive("elsewhere", os.getpid()) is None
