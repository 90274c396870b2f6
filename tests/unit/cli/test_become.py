"""The password that sudo wants: never an argument, never a file, and only from a terminal."""

import os
import pty
import stat
import sys
import threading
from pathlib import Path

import pytest

from boxwright.cli import become
from boxwright.errors import UserError

SECRET = "geheim {{ 1 }} $x"


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    monkeypatch.setattr(become, "_given", [])


def test_without_a_terminal_it_says_what_to_do(monkeypatch):
    monkeypatch.setattr("sys.stdin", open(os.devnull))  # noqa: PTH123, SIM115
    with pytest.raises(UserError, match="no terminal") as refused:
        become.ask(True)
    assert refused.value.status == 2
    assert any("vault" in way for way in refused.value.ways_out)


def test_nobody_is_asked_unless_it_is_wanted(monkeypatch, tmp_path):
    monkeypatch.setattr("getpass.getpass", pytest.fail)
    become.ask(False)
    with become.handed_over(tmp_path) as given:
        assert given == {}
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def asked(monkeypatch):
    monkeypatch.setattr("sys.stdin", type("Terminal", (), {"isatty": lambda self: True})())
    monkeypatch.setattr("getpass.getpass", lambda prompt: SECRET)
    become.ask(True)


def test_a_run_reads_it_from_a_pipe(asked, tmp_path):
    with become.handed_over(tmp_path) as variables:
        pipe = Path(variables[become.VARIABLE])
        assert stat.S_ISFIFO(pipe.stat().st_mode)
        assert pipe.stat().st_mode & 0o777 == 0o600
        assert pipe.read_text() == SECRET + "\n"
        assert SECRET not in str(variables)


def test_a_run_that_never_reads_it_holds_nobody_up(asked, tmp_path):
    before = set(threading.enumerate())
    with become.handed_over(tmp_path):
        pass
    assert set(threading.enumerate()) <= before


def test_it_is_asked_for_on_a_terminal_and_not_shown():
    code = "from boxwright.cli import become; become.ask(True); print(len(become._given[0]))"
    child, terminal = pty.fork()
    if not child:
        os.chdir(Path(__file__).resolve().parents[3])
        os.execv(sys.executable, [sys.executable, "-c", code])
    said = os.read(terminal, 1024)
    os.write(terminal, b"12345678\n")
    while True:
        try:
            more = os.read(terminal, 1024)
        except OSError:
            break
        if not more:
            break
        said += more
    os.waitpid(child, 0)
    os.close(terminal)
    assert b"sudo's password on the box: " in said
    assert b"12345678" not in said
    assert said.split()[-1] == b"8"


@pytest.mark.parametrize("said", ["", "x" * 2000])
def test_what_is_no_password(monkeypatch, said):
    monkeypatch.setattr("sys.stdin", type("Terminal", (), {"isatty": lambda self: True})())
    monkeypatch.setattr("getpass.getpass", lambda prompt: said)
    with pytest.raises(UserError, match="no password"):
        become.ask(True)
