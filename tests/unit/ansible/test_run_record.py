"""A run's two lines in a box's history, left by a real playbook on this machine."""

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from boxwright.ansible import runs
from boxwright.cli.ansible_run import ROOT, environment
from boxwright.facts.runs import past_runs

RUN = {
    "run": "20261130T060000Z-abc123",
    "verb": "provision",
    "user": "me",
    "controller": "desk",
    "process": 1,
    "options": [],
    "inventory": [],
}
PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - run_record: {event: begun, directory: DIRECTORY}
    - block:
        - name: Something is made
          ansible.builtin.file: {path: DIRECTORY-made, state: touch, mode: "0600"}
        - name: Something is looked at
          ansible.builtin.file: {path: DIRECTORY-looked-at, state: touch, mode: "0600"}
          check_mode: true
        - name: The host goes away
          ansible.builtin.command: "true"
          vars: {ansible_connection: ssh, ansible_host: 127.0.0.1, ansible_port: 9}
          when: goes_away | default(false)
        - name: Something is wanted
          ansible.builtin.assert:
            that: well
            fail_msg: "no room; token=hf_abcdefghijklmnop s3cretvalue\\nmore"
      always:
        - run_record: {event: ended, directory: DIRECTORY}
"""


@pytest.fixture
def played(tmp_path):
    """Run the play: the lines that it left, and what it said."""

    def call(*, check=False, **variables):
        directory = tmp_path / "history"
        playbook = tmp_path / "play.yml"
        playbook.write_text(PLAY.replace("DIRECTORY", str(directory)))
        given = json.dumps({runs.VARIABLE: RUN, "well": True, "box_hub_token": "s3cretvalue", **variables})
        done = subprocess.run(
            [str(Path(sys.executable).parent / "ansible-playbook"), str(playbook),
             "-i", "box1,", "-c", "local", "-e", given, *(["--check"] if check else [])],
            cwd=ROOT, env=environment(tmp_path / "report.json")
            | {"PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(tmp_path / "state")},
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        file = directory / "runs.jsonl"
        return (file.read_text().splitlines() if file.exists() else []), done, file

    return call


def test_a_run_that_fails_leaves_why_and_no_secret(played):
    lines, done, file = played(well=False)
    assert done.returncode == 2, done.stdout + done.stderr
    assert [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent)] == [0o600, 0o700]
    (one,) = past_runs(lines, lambda *_: None)
    assert (one.outcome, one.by, one.changed) == ("failed", "me@desk", {"other": 1})
    assert one.failure.task == "Something is wanted"
    assert one.failure.message == "no room; token=*** ***"
    assert "s3cret" not in file.read_text()
    assert "hf_abc" not in file.read_text()


def test_a_run_that_ends_well_and_one_that_only_looks(played):
    assert played(well=True, check=True)[0] == []
    lines, done, _ = played(well=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [past.outcome for past in past_runs(lines, lambda *_: None)] == ["ok"]


def test_a_run_whose_host_goes_away_has_an_end_when_the_next_one_begins(played, tmp_path):
    lines, _, _ = played(goes_away=True)
    assert [json.loads(line)["event"] for line in lines] == ["begun"]
    (kept,) = (tmp_path / "state" / "boxwright" / "history").iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    lines, _, _ = played(**{runs.VARIABLE: {**RUN, "run": "20261130T070000Z-def456"}})
    first, second = past_runs(lines, lambda *_: None)
    assert (first.outcome, first.changed, second.outcome) == ("failed", {"other": 1}, "ok")
    assert first.failure.task == "The host goes away"
    assert "Connection refused" in first.failure.message
    assert not kept.exists()


def test_the_end_of_another_box_of_the_same_name_is_not_handed_over(played, tmp_path):
    played(goes_away=True)
    lines, _, _ = played(ansible_port=2222, **{runs.VARIABLE: {**RUN, "run": "20261130T070000Z-def456"}})
    assert [json.loads(line)["run"][9:13] for line in lines] == ["0600", "0700", "0700"]
    assert len(list((tmp_path / "state" / "boxwright" / "history").iterdir())) == 1


def test_a_secret_that_cannot_be_templated_hides_no_failure(played):
    lines, done, _ = played(well=False, box_hub_token="{{ nowhere.to_be_found }}")
    (one,) = past_runs(lines, lambda *_: None)
    assert one.failure.task == "Something is wanted"
    assert "nowhere" not in done.stdout


def test_a_history_that_cannot_be_written_ends_no_run(played, tmp_path):
    (tmp_path / "history").write_text("a file in its place")
    _, done, _ = played(well=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "not in the history of the box" in done.stdout


def shell(script):
    return subprocess.run(["/bin/sh"], input=script, text=True, check=True, timeout=60)


def test_lines_of_many_at_once_are_whole_and_a_torn_one_harms_none(tmp_path):
    file = tmp_path / "runs.jsonl"
    file.write_text('{"event": "begun", "ru')
    writers = [subprocess.Popen(["/bin/sh"], stdin=subprocess.PIPE, text=True) for _ in range(8)]
    for number, one in enumerate(writers):
        one.stdin.write(runs.script([{"n": number, "text": "it's \\n $HOME `id` %s"}], str(tmp_path)))
        one.stdin.close()
    assert [one.wait(timeout=60) for one in writers] == [0] * 8
    torn, *rest = file.read_text().splitlines()
    assert torn == '{"event": "begun", "ru'
    assert sorted(json.loads(line)["n"] for line in rest) == list(range(8))
    assert {json.loads(line)["text"] for line in rest} == {"it's \\n $HOME `id` %s"}


def test_the_history_does_not_grow_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "MOST_BYTES", 200)
    for number in range(30):
        shell(runs.script([{"n": number, "text": "x" * 30}], str(tmp_path)))
    files = {path.name: path.read_text() for path in tmp_path.glob("runs.jsonl*")}
    assert set(files) == {"runs.jsonl", "runs.jsonl.1"}
    assert all(len(text) < 300 for text in files.values())
    assert json.loads(files["runs.jsonl"].splitlines()[-1])["n"] == 29


def test_what_an_end_tells():
    host = {
        "changed_tasks": [
            {"role": "engine", "task": "a", "said": "qwen serves release bbb"},
            {"role": "engine", "task": "b"},
            {"role": None, "task": "c"},
            {"role": "engine", "task": "d", "said": "qwen would be started", "check": True},
        ],
        "results": {
            "engine_gate": [{"results": [
                {"name": "qwen", "release": "bbb", "before": "aaa", "changed": True},
                {"name": "draft", "release": "ccc", "before": "ccc", "changed": False},
            ]}],
            "engine_bench": [{"run": {"id": "20261130T060000Z-bbb"}}],
            "lock_update": [{"moves": [{"name": "org/m", "before": "1" * 40, "after": "2" * 40},
                                       {"name": "org/n", "before": "1" * 40, "after": "1" * 40}]}],
            "model_listing": [{"freed": ["/var/lib/boxwright/models/x"]}],
        },
        "failure": None,
    }  # fmt: skip
    line = runs.ended(RUN, host)
    assert line["changed"] == {"engine": 2, "other": 1}
    assert line["releases"] == [{"deployment": "qwen", "before": "aaa", "after": "bbb"}]
    assert line["did"] == [
        "qwen serves release bbb",
        "measured: 20261130T060000Z-bbb",
        "freed /var/lib/boxwright/models/x",
        "org/m: locked at 2222222222",
    ]
    assert (line["outcome"], line["failure"]) == ("ok", None)


def test_a_refusal_names_its_gate():
    message = (
        "box1: refused, nothing was changed\n\n  does-not-fit   hosts.yml:3\n    it lacks 3 GiB\n    Do x"
    )
    failure = {"kind": "refused", "role": "preflight", "task": "The plan can work", "message": message}
    line = runs.ended(RUN, {"failure": failure})
    assert line["outcome"] == "refused"
    assert line["failure"]["message"] == "does-not-fit hosts.yml:3 it lacks 3 GiB Do x"


def test_a_line_is_bounded():
    said = [{"role": "engine", "task": "t", "said": "long " * 1000} for _ in range(50)]
    host = {"changed_tasks": said, "failure": {"message": "word " * 9000, "task": "t" * 9000, "role": "x"}}
    assert len(json.dumps(runs.ended(RUN, host))) < 8000
