"""The step that runs: shown with its time, in place on a terminal, or a line every half minute."""

import contextlib
import json
import os
import pty
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from boxwright.ansible.action.watched import Pace
from boxwright.ansible.bars import Board
from boxwright.ansible.running import INTERVAL_S, SHORT_S, Running, Ticker
from boxwright.cli.ansible_run import ROOT, environment

PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - name: Something takes long
      ansible.builtin.wait_for: {path: GO}
    - name: Something shows itself
      held_packages: {name: x, packages: [x], state: absent}
      check_mode: true
      ignore_errors: true
"""


def test_a_step_is_told_every_half_minute():
    running = Running()
    running.begin("box1", "The host is rebooted", 100.0)
    assert running.due(100.0 + INTERVAL_S - 1) == []
    assert running.due(100.0 + INTERVAL_S) == ["  box1  The host is rebooted  30 s"]
    assert running.due(101.0 + INTERVAL_S) == []
    assert running.due(100.0 + 4 * INTERVAL_S) == ["  box1  The host is rebooted  2 min"]
    assert running.end("box1")
    assert not running.end("box1")
    assert running.due(1000.0) == []


def test_a_short_step_is_not_drawn():
    running = Running()
    running.begin("box1", "a", 100.0)
    running.begin("box2", "b", 100.0 + SHORT_S)
    assert running.drawn(100.0 + SHORT_S) == {"box1": "  box1  a  3 s"}


def test_a_step_that_has_ended_leaves_no_line(tmp_path):
    reader, screen = pty.openpty()
    running, now = Running(), [100.0]
    ticker = Ticker(
        running, print, Board(tmp_path, os.ttyname(screen)), contextlib.nullcontext(), lambda: now[0]
    )
    running.begin("box1", "a step", 100.0)
    running.begin("box2", "another", 100.0)
    ticker.tick(running.drawn(105.0))
    seen = os.read(reader, 65536).decode()
    assert "box1  a step  5 s" in seen
    assert "box2  another  5 s" in seen
    now[0] = 106.0
    ticker.ended("box1")
    seen = os.read(reader, 65536).decode()
    assert "box1" not in seen
    assert "box2  another  6 s" in seen
    ticker.stop()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bars.lock"]
    os.close(reader)
    os.close(screen)


@pytest.mark.parametrize("terminal", [True, False])
def test_a_run_shows_its_step(terminal, tmp_path):
    """The step ends once it was seen; without a terminal nothing is drawn before half a minute is over."""
    reader, screen = pty.openpty()
    go, playbook = tmp_path / "go", tmp_path / "play.yml"
    playbook.write_text(PLAY.replace("GO", str(go)))
    if not terminal:
        go.touch()
    run = subprocess.Popen(
        [str(Path(sys.executable).parent / "ansible-playbook"), str(playbook), "-i", "box1,", "-c", "local",
         "-e", json.dumps({"ansible_python_interpreter": sys.executable})],
        cwd=ROOT,
        env=environment(tmp_path / "report.json")
        | {"PYTHONPATH": str(ROOT), "BOXWRIGHT_TERMINAL": os.ttyname(screen) if terminal else ""},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    guard = threading.Timer(600, run.kill)
    guard.start()
    seen = ""
    while terminal and "box1  Something takes long  " not in seen:
        seen += os.read(reader, 65536).decode()
    go.touch()
    said, _ = run.communicate()
    guard.cancel()
    assert run.returncode == 0, said
    assert "Something takes long" not in said
    os.close(reader)
    os.close(screen)


def test_how_a_share_and_a_stage_are_told():
    state = {"stage": "downloading packages", "done": 25.0, "total": 100, "unit": "%"}
    pace = Pace({**state, "done": 0}, 100.0)
    assert pace.describe(state, 100.0) == "downloading packages  25 %"
    assert pace.describe(state, 130.0) == "downloading packages  25 %  90 s left"
    assert (
        pace.describe(state, 130.0, drawn=True)
        == "downloading packages  █████░░░░░░░░░░░░░░░  25 %  90 s left"
    )
    stage = Pace({"stage": "working out which packages change"}, 100.0)
    assert stage.describe({"stage": "working out"}, 101.0) == "working out"
    assert stage.describe({"stage": "working out"}, 190.0) == "working out  90 s"
