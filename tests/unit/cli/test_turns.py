"""Two runs on one box: the second waits, says for whom, and not for ever."""

import subprocess
import sys

import pytest

from boxwright.cli import turns
from boxwright.errors import UserError

BOX = {"box1": "192.0.2.7:22"}
HOLD = """
import pathlib, sys
from boxwright.cli.turns import turn
with turn({"other name": "192.0.2.7:22"}, print, directory=pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path, monkeypatch):
    """Another process that has the box; it lets go when its standard input ends."""
    monkeypatch.setattr(turns, "POLL_S", 0.02)
    argv = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.stdin.close()


def test_the_second_waits_and_says_for_whom(holder, tmp_path):
    said = []

    def say(line):
        said.append(line)
        holder.stdin.close()

    with turns.turn(BOX, say, directory=tmp_path):
        assert len(said) == 1
        assert f"box1: another run works on it (process {holder.pid}, since " in said[0]


def test_waiting_has_an_end(holder, tmp_path):
    with (
        pytest.raises(UserError, match="still after 0 s") as refused,
        turns.turn(BOX, print, directory=tmp_path, patience_s=0.1),
    ):
        pytest.fail("the box is taken")
    assert str(holder.pid) in str(refused.value)


def test_other_boxes_are_free(holder, tmp_path):
    with turns.turn({"box1": "192.0.2.8:22"}, pytest.fail, directory=tmp_path):
        pass


def test_the_lock_of_a_killed_run_is_free(holder, tmp_path):
    holder.kill()
    holder.wait(30)
    with turns.turn(BOX, pytest.fail, directory=tmp_path):
        pass


def test_boxes_are_told_apart_by_where_they_are(tmp_path):
    """Two checkouts' labs have a lab1 each; one box has two names; two sites have one private address."""
    for name, text in {
        "one": "Host lab1\n HostName 192.0.2.7\n",
        "two": "Host lab1\n HostName 192.0.2.8\n",
        "site": "Host *\n ProxyJump gate\n",
    }.items():
        (tmp_path / name).write_text(text)
    known = {
        "lab1": {"ansible_ssh_common_args": f"-F {tmp_path}/one"},
        "same": {"ansible_ssh_common_args": f"-F {tmp_path}/one", "ansible_host": "192.0.2.7"},
        "other": {"ansible_ssh_common_args": f"-F {tmp_path}/two", "ansible_host": "lab1"},
        "port": {
            "ansible_ssh_common_args": f"-F {tmp_path}/one",
            "ansible_host": "lab1",
            "ansible_port": 2222,
        },
        "site": {"ansible_ssh_common_args": f"-F {tmp_path}/site", "ansible_host": "192.0.2.7"},
    }
    found = turns.addresses(list(known), known.get)
    assert found["lab1"] == found["same"]
    assert len(set(found.values())) == 4


def test_boxes_are_told_apart_where_ssh_does_not_say(monkeypatch):
    monkeypatch.setattr("boxwright.cli.turns.route", lambda words: None)
    known = {"a": {"ansible_host": "192.0.2.7"}, "b": {"ansible_host": "192.0.2.7", "ansible_port": 2222}}
    assert len(set(turns.addresses(list(known), known.get).values())) == 2


def test_a_place_where_nothing_can_be_written(tmp_path):
    (tmp_path / "turns").write_text("a file")
    with (
        pytest.raises(UserError, match="no lock can be kept"),
        turns.turn(BOX, print, directory=tmp_path / "turns"),
    ):
        pytest.fail("there is no lock")
