"""The log of a run: all that Ansible does and says, no secret, and no more than so many bytes."""

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from boxwright.ansible.run_log import FILE, MOST_OF_A_RESULT, SHOWN, RunLog, result_text
from boxwright.cli.ansible_run import ROOT, environment

SECRET, SHORT = "s3cretvalue", "ab1"
PLAY = """
- name: Do it
  hosts: all
  gather_facts: false
  tasks:
    - name: Something is said
      ansible.builtin.command: echo word {{ box_hub.token }}
      changed_when: true
    - name: Something is said that nobody may read
      ansible.builtin.command: echo unlisted-thing
      no_log: true
      changed_when: true
    - name: A key is read
      ansible.builtin.slurp: {src: KEYFILE}
    - name: Something has a password
      ansible.builtin.set_fact: {login: {user: me, password: "{{ short }}"}}
    - name: Something is not wanted
      ansible.builtin.debug: {msg: never}
      when: false
    - name: Something breaks
      ansible.builtin.command: ls /no/such/place-s3cretvalue
"""


@pytest.fixture
def played(tmp_path):
    """Run the play: what it displayed, and its log."""

    def call(*, shown="0", log=None):
        log = log or tmp_path / "run.log"
        if not log.exists() and log.parent.is_dir():
            log.touch(0o600)
        (tmp_path / "key").write_text("the-key-of-the-box")
        playbook = tmp_path / "play.yml"
        playbook.write_text(PLAY.replace("KEYFILE", str(tmp_path / "key")))
        given = {"mine": SECRET, "box_hub": {"token": "{{ mine }}"}, "short": SHORT}
        done = subprocess.run(
            [str(Path(sys.executable).parent / "ansible-playbook"), str(playbook),
             "-i", "box1,", "-c", "local", "-e", json.dumps(given)],
            cwd=ROOT,
            env=environment(tmp_path / "report.json")
            | {"PYTHONPATH": str(ROOT), FILE: str(log), SHOWN: shown},
            capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
        assert done.returncode == 2, done.stdout + done.stderr
        return done.stdout + done.stderr, log

    return call


def test_every_task_is_there_with_what_it_returned_and_no_secret(played):
    said, log = played()
    text = log.read_text()
    for words in ("PLAY  Do it", "TASK  Something is said", '"stdout": "word ***"', "box1: skipped",
                  "TASK  Something breaks", "box1: failed at: Something breaks", "No such file"):  # fmt: skip
        assert words in text, words
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert '"user": "me"' in text
    for secret in (SECRET, "unlisted-thing", "the-key-of-the-box", "dGhlLWtleS1v", f'"{SHORT}"'):
        assert secret not in text, secret
    assert "TASK" not in said


def test_the_terminal_has_it_too_where_it_is_asked_for(played):
    said, _ = played(shown="1")
    assert "TASK  Something breaks" in said
    assert '"stdout": "word ***"' in said
    assert "unlisted-thing" not in said


def test_a_log_that_cannot_be_written_ends_no_run(played, tmp_path):
    said, _ = played(log=tmp_path / "nowhere" / "run.log")
    assert said.count("the log of this run ends here") == 1
    assert "failed at: Something breaks" in said


def test_a_long_log_keeps_its_begin_and_its_end(tmp_path):
    file = tmp_path / "run.log"
    file.touch(0o600)
    log = RunLog(file, most=4000, head=1000)
    for number in range(1000):
        log.write(f"line {number} " + "x" * 20)
    lines = file.read_text().splitlines()
    assert file.stat().st_size < 4500
    assert "line 0 " in lines[0]
    assert "line 999 " in lines[-1]
    assert sum("the middle of this log" in line for line in lines) == 1
    assert all(line.endswith("x" * 20) for line in lines if " line " in line)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_log_steers_no_terminal(tmp_path):
    file = tmp_path / "run.log"
    file.touch()
    RunLog(file).write("\x1b[31mred\x1b[0m\x1b]0;title\x07 \rgone")
    assert not set(file.read_text()) & set("\x1b\x07\r")
    assert " red" in file.read_text()


def test_a_log_that_was_removed_is_not_made_anew_for_everybody(tmp_path):
    for path in (tmp_path / "run.log", tmp_path / "link.log"):
        if path.name == "link.log":
            path.symlink_to(tmp_path / "elsewhere")
        with pytest.raises(OSError, match=r"No such file|symbolic"):
            RunLog(path).write("word")
    assert [path.name for path in tmp_path.iterdir()] == ["link.log"]


def test_a_secret_at_the_cut_of_a_long_result_is_whole_or_not_there(tmp_path):
    log = RunLog(tmp_path / "run.log")
    log.learn([SECRET * 2])
    for before in range(MOST_OF_A_RESULT - 40, MOST_OF_A_RESULT):
        text = result_text("command", {"out": "y" * before + SECRET * 2 + "z" * 9}, log.masked)
        assert "s3cr" not in text
