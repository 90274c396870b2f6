"""Where the log of a verb is, how many there are, and that a verb that fails names it."""

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import tasks
from boxwright.cli import run_logs
from boxwright.cli.ansible_run import ROOT

#: Verbs that never look at a box.
AT_HOME = {"dashboards", "explain", "validate", "schema", "test", "role"}


@pytest.fixture
def state(tmp_path, monkeypatch):
    """The directory of the logs."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    run_logs.begin("plan")
    return tmp_path / "state" / "boxwright" / "logs"


def test_a_verb_has_one_log_that_only_its_user_reads(state):
    first, second = run_logs.opened(), run_logs.opened()
    assert first == second
    assert first.parent == state
    assert re.fullmatch(r"plan-\d{8}T\d{6}Z-[0-9a-f]{6}\.log", first.name)
    assert [stat.S_IMODE(one.stat().st_mode) for one in (first, state)] == [0o600, 0o700]


def test_there_are_no_more_than_so_many_of_a_verb(state, monkeypatch):
    monkeypatch.setattr(run_logs, "MOST_OF_A_VERB", 3)
    names = []
    for number in range(5):
        run_logs.begin("plan")
        names.append(run_logs.opened())
        os.utime(names[-1], (number, number))
    run_logs.begin("provision")
    run_logs.opened()
    (state / "mine.txt").write_text("a file of somebody's")
    run_logs.begin("plan")
    names.append(run_logs.opened())
    kept = {path.name for path in state.iterdir()}
    assert {path.name for path in names if path.exists()} == {path.name for path in names[-3:]}
    assert "mine.txt" in kept
    assert sum(name.startswith("provision-") for name in kept) == 1


def test_all_together_they_are_no_larger_than_so_many_bytes(state, monkeypatch):
    monkeypatch.setattr(run_logs, "MOST_BYTES", 2500)
    paths = []
    for number, verb in enumerate(("plan", "status", "provision", "verify")):
        run_logs.begin(verb)
        paths.append(run_logs.opened())
        paths[-1].write_text("x" * 1000)
        os.utime(paths[-1], (number, number))
    run_logs.begin("doctor")
    last = run_logs.opened()
    assert [path.exists() for path in paths] == [False, False, True, True]
    assert last.exists()


def test_where_no_log_can_be_kept_the_verb_goes_on(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    run_logs.begin("plan")
    assert run_logs.opened() is None
    assert "no log of this run is kept" in capsys.readouterr().err
    assert run_logs.named() is None


VERBS = {name: found for name, found in tasks.namespace.tasks.items() if name not in AT_HOME}


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_that_looks_at_a_box_takes_verbose(name):
    words = {argument.name for argument in VERBS[name].get_arguments()}
    assert {"verbose", "json"} <= words


@pytest.fixture
def ran(tmp_path):
    """Run a verb on a host that is not there."""
    inventory = tmp_path / "inventory"
    (inventory / "host_vars").mkdir(parents=True)
    (inventory / "hosts.yml").write_text(
        "all: {hosts: {box1: {ansible_host: 127.0.0.1, ansible_port: 9, box_gpus: {model: rtx5090}}}}"
    )

    def call(*words):
        return subprocess.run(
            [sys.executable, "-m", "boxwright.cli", *words, "--inventory", str(inventory)],
            cwd=ROOT,
            env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "PYTHONPATH": str(ROOT)},
            capture_output=True, text=True, check=False, timeout=600, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    return call


@pytest.mark.parametrize("verb", ["facts", "status", "provision"])
def test_a_run_that_fails_names_its_log(ran, verb):
    done = ran(verb, "--host", "box1")
    assert done.returncode == 1, done.stdout + done.stderr
    (named,) = set(re.findall(rf"\S+/{verb}-\S+\.log", done.stderr))
    text = Path(named).expanduser().read_text()
    assert f"PLAYBOOK  {verb}.yml on box1" in text
    assert "Connection refused" in text
    assert "TASK" not in done.stdout + done.stderr


def test_a_program_is_told_the_log_too_and_verbose_leaves_its_json_alone(ran):
    done = ran("facts", "--host", "box1", "--json", "--verbose")
    error = json.loads(done.stdout)["error"]
    assert "Connection refused" in Path(error["log"]).read_text()
    assert "TASK" in done.stderr


def test_what_keeps_ansible_from_beginning_is_in_the_log(ran, tmp_path, monkeypatch):
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", str(tmp_path / "no-such-password"))
    done = ran("facts", "--host", "box1", "--json")
    error = json.loads(done.stdout)["error"]
    assert error["what"] == "Ansible stopped before it ran anything"
    assert "no-such-password" in error["why"]
    assert "no-such-password" in Path(error["log"]).read_text()
