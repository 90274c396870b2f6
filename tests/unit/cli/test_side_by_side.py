"""Several boxes at once: what came of each, and Ctrl-C for all of them."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from boxwright.cli import ansible_run, side_by_side
from boxwright.cli.interrupts import Interrupts
from boxwright.errors import UserError

LONG = [sys.executable, "-c", "import time; time.sleep(60)"]
NAMES = ("a", "b", "c")


@pytest.fixture(autouse=True)
def no_log(monkeypatch):
    monkeypatch.setattr(side_by_side.run_logs, "opened", lambda: None)


@pytest.fixture
def interruptible():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def run(argv):
    return ansible_run._run(argv, dict(os.environ), subprocess.PIPE, subprocess.DEVNULL)


def test_all_at_once_and_one_that_fails_holds_up_no_other():
    together = threading.Barrier(3, timeout=30)

    def work(name):
        together.wait()
        if name == "b":
            raise UserError("it is off", where=name)
        return name.upper()

    found, missed = side_by_side.side_by_side(NAMES, work)
    assert found == {"a": "A", "c": "C"}
    assert {name: error.what for name, error in missed.items()} == {"b": "it is off"}


def test_one_alone_is_worked_on_here():
    found, missed = side_by_side.side_by_side(["a"], lambda _: threading.current_thread())
    assert (found, missed) == ({"a": threading.main_thread()}, {})


def test_a_fault_of_ours_is_one():
    with pytest.raises(ZeroDivisionError):
        side_by_side.side_by_side(NAMES, lambda name: 1 // (name == "a"))


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_what_all_wait_for_once_and_their_ways_back_run():
    back, status = {}, {}

    def work(name):
        try:
            run(LONG)
        except KeyboardInterrupt:
            status[name], back[name] = run([sys.executable, "-c", "print('back')"])
            raise

    began = time.monotonic()
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        side_by_side.side_by_side(NAMES, work)
    assert time.monotonic() - began < 30
    assert back == dict.fromkeys(NAMES, "back\n")
    assert status == dict.fromkeys(NAMES, 0)
    # What comes later in this process is not concerned.
    assert run([sys.executable, "-c", "print('on')"]) == (0, "on\n")
    assert side_by_side.side_by_side(NAMES, lambda name: run([sys.executable, "-c", ""])[0])[
        0
    ] == dict.fromkeys(NAMES, 0)


def test_each_thread_hears_of_it_once():
    known, heard = Interrupts(), []

    def thread():
        known.begin()
        known.check()
        begun.set()
        assert stopped.wait(30)
        for _ in range(3):
            try:
                known.check()
            except KeyboardInterrupt:
                heard.append(threading.current_thread())

    begun, stopped = threading.Event(), threading.Event()
    other = threading.Thread(target=thread)
    other.start()
    assert begun.wait(30)
    known.stop()
    stopped.set()
    other.join()
    known.check()
    assert heard == [other]


def test_what_begins_as_ctrl_c_comes_is_ended_too():
    known = Interrupts()
    known.begin()
    known.stop()
    process = subprocess.Popen(LONG, text=True)
    with pytest.raises(KeyboardInterrupt), known.ending(process):
        process.wait(30)
    assert process.returncode == -signal.SIGKILL
