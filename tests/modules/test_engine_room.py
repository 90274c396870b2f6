"""Memory of the cards before a start: waited for, and told who holds it."""

import sys
from pathlib import Path

import pytest
from ansible.module_utils import engine_room
from ansible.module_utils.command import Result

sys.path.insert(0, str(Path(__file__).parent))
from engine_doubles import Clock

GIB = 1 << 30
PLAN = {"memory": {"cards": [{"index": 0, "wanted_bytes": 28 * GIB}, {"index": 1, "wanted_bytes": 28 * GIB}]}}


class Smi:
    """Cards whose free memory follows a script: at second N this much, in MiB."""

    def __init__(self, clock):
        self.clock, self.free, self.apps, self.rc = clock, {0: 32000}, "", 0

    def __call__(self, argv, timeout=60):
        if argv[1].startswith("--query-compute-apps"):
            return Result(self.rc, self.apps, "")
        free = [free for second, free in sorted(self.free.items()) if second <= self.clock.now][-1]
        rows = [f"{index}, GPU-{index}, 32607 MiB, {32607 - free} MiB, {free} MiB\n" for index in (0, 1)]
        return Result(self.rc, "".join(rows), "")


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def smi(monkeypatch, clock):
    found = Smi(clock)
    monkeypatch.setattr(engine_room, "run", found)
    return found


@pytest.fixture
def wait(clock):
    def call(plan=PLAN):
        told = []
        lack = engine_room.wait(engine_room.wanted(plan), told.append, 60, clock, clock.sleep)
        return lack, told

    return call


def test_room_at_once(smi, clock, wait):
    assert wait() == (None, [])
    assert clock.now == 0


def test_memory_that_comes_free_is_waited_for(smi, clock, wait):
    smi.free = {0: 900, 7: 32000}
    lack, told = wait()
    assert (lack, clock.now) == (None, 7)
    assert told[0] == "waiting for memory of card 0, 1"


def test_memory_that_does_not_is_told_with_what_holds_it(smi, clock, wait):
    smi.free = {0: 20000}
    smi.apps = "GPU-1, 4711, 11000 MiB, /usr/bin/python3\n"
    lack, _ = wait()
    assert clock.now == 60
    first, second = lack.split("; ")
    assert first.startswith(
        "card 0 has 20000 MiB free, and the engine takes 28672: in use by what nvidia-smi"
    )
    assert second.endswith("in use by /usr/bin/python3 (process 4711, 11000 MiB)")


def test_a_few_mebibytes_are_nothing(smi, wait):
    smi.free = {0: 28672 - 60}
    assert wait()[0] is None


@pytest.mark.parametrize("plan", [{}, {"memory": None}, {"memory": {"cards": [{"index": 0}]}}])
def test_where_the_plan_does_not_know_nothing_is_waited_for(smi, clock, wait, plan):
    smi.free = {0: 0}
    assert wait(plan) == (None, [])


def test_cards_that_do_not_answer_are_the_engines_to_tell(smi, wait):
    smi.rc = 9
    assert wait() == (None, [])
