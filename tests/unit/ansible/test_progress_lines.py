"""How far a host is: plain lines in a log, bars in place on a terminal, several hosts at once."""

import os
import pty
import threading
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleConnectionFailure

from boxwright.ansible.action import watched
from boxwright.ansible.action.watched import Pace, WatchedAction
from boxwright.ansible.bars import CLEAR, Board, bar
from boxwright.texts import lasting


def state(done, total=20_000_000_000, stage="fetching org/name", unit="bytes"):
    return {"stage": stage, "done": done, "total": total, "unit": unit}


def test_a_line():
    pace = Pace(state(0), 100.0)
    assert pace.describe(state(0), 100.0) == "fetching org/name  0 of 20,000 MB  0 %"
    told = pace.describe(state(1_000_000_000), 110.0)
    assert told == "fetching org/name  1,000 of 20,000 MB  5 %  100.0 MB/s  3 min left"
    assert pace.describe({"stage": "making the hub environment"}, 1.0) == "making the hub environment"
    assert pace.describe(state(7, total=None, unit="files"), 1.0) == "fetching org/name  7 files"
    assert pace.describe(state(20_000_000_000), 300.0).endswith("100 %  3 min")


@pytest.mark.parametrize(("total", "unit"), [(4, "repeats"), (100, "%"), (None, "files")])
def test_a_stage_that_stands_still_tells_how_long_it_takes(total, unit):
    still = state(0, total, "measures", unit)
    assert Pace(still, 0.0).describe(still, 61.0).endswith("  61 s")
    assert not Pace(still, 0.0).describe(still, 1.0).endswith("s  1 s")


def test_what_an_earlier_run_brought_makes_nothing_faster():
    pace = Pace(state(10_000_000_000), 0.0)
    told = pace.describe(state(10_100_000_000), 10.0)
    assert "10.0 MB/s" in told
    assert "16 min left" in told


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0 s"), (99, "99 s"), (100, "2 min"), (5400, "90 min"), (11_100, "3 h 5 min")]
)
def test_lasting(seconds, words):
    assert lasting(seconds) == words


def test_a_bar():
    assert bar(0, 10) == "░" * 20
    assert bar(5, 10) == "█" * 10 + "░" * 10
    assert bar(20, 10) == "█" * 20
    assert bar(0, 0) == "░" * 20
    drawn = Pace(state(0), 0.0).describe(state(10_000_000_000), 10.0, drawn=True)
    assert "██████████░░░░░░░░░░" in drawn


def test_hosts_share_a_board(tmp_path):
    reader, screen = pty.openpty()
    board = Board(tmp_path, os.ttyname(screen))

    def seen():
        return os.read(reader, 65536).decode()

    board.show("box1", "  box1  one")
    assert "  box1  one" in seen()
    Board(tmp_path, os.ttyname(screen)).show("box2/../x", "  box2  two")
    drawn = seen()
    assert drawn.startswith("\r" + CLEAR)
    assert drawn.index("box1  one") < drawn.index("box2  two")
    assert drawn.endswith("\033[2A")
    board.show("box1", "")
    drawn = seen()
    assert "box1" not in drawn
    assert drawn.endswith("\033[1A")
    board.show("box2/../x", "")
    assert seen() == "\r" + CLEAR
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bars.lock"]
    os.close(reader)
    os.close(screen)


@pytest.mark.parametrize("error", [AnsibleConnectionFailure("Shared connection closed"), OSError("no ssh")])
def test_a_connection_that_is_lost_ends_the_watching_quietly(error, monkeypatch):
    """The module's own call tells of it; a thread that raised would show its traceback to everybody."""
    asked = []

    def exec_command(*_, **__):
        asked.append(1)
        raise error

    monkeypatch.setattr(watched, "POLL_S", 0.01)
    raised = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    action = WatchedAction.__new__(WatchedAction)
    action._connection = SimpleNamespace(exec_command=exec_command)
    watcher = threading.Thread(target=action._watch, args=("/run/x", threading.Event(), {}))
    watcher.start()
    watcher.join(10)
    assert not watcher.is_alive()
    assert (asked, raised) == ([1], [])
