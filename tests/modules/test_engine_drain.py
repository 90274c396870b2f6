"""Requests that are worked on when their engine is to end."""

import sys
from pathlib import Path

import pytest
from ansible.module_utils.engine_drain import busy, close, drains_itself, until_quiet
from ansible.module_utils.engine_probe import Endpoint

sys.path.insert(0, str(Path(__file__).parent))
from engine_doubles import KEY, Clock, Server


@pytest.mark.parametrize(
    ("command", "itself"),
    [
        (["vllm", "serve", "/model", "--shutdown-timeout", "60"], True),
        (["vllm", "serve", "/model", "--shutdown-timeout=60"], True),
        (["vllm", "serve", "/model"], False),
    ],
)
def test_which_engine_drains_itself(command, itself):
    assert drains_itself({"command": command}) is itself


@pytest.mark.parametrize(
    ("counts", "left", "seconds"), [([3, 1, 0], 0, 1.0), ([0], 0, 0), ([2] * 99, 2, 10.0), ([None], None, 0)]
)
def test_a_quiet_moment_is_waited_for_but_not_for_ever(counts, left, seconds):
    clock, told, row = Clock(), [], iter(counts)
    assert until_quiet(lambda: next(row), 10, told.append, clock, clock.sleep) == left
    assert clock.now == seconds
    assert told == [count for count in counts if count][: len(told)]


def test_what_is_worked_on_is_the_engines_own_count():
    server = Server()
    endpoint = Endpoint("127.0.0.1", server.port, KEY)
    server.metrics = (
        'vllm:num_requests_running{engine="0"} 2.0\nvllm:num_requests_running{engine="1"} 1.0\n'
        'vllm:num_requests_waiting{engine="0"} 4.0\nvllm:num_requests_waiting_by_reason{r="x"} 9.0\n'
    )
    assert busy(endpoint) == 7
    server.metrics = "# nothing of the kind\n"
    assert busy(endpoint) is None
    server.close()
    assert busy(endpoint) is None


def test_a_guard_that_looks_for_it_is_told_to_take_no_new_work(tmp_path):
    close({"cache_directory": str(tmp_path), "guard": {"closing": True}})
    assert [path.name for path in tmp_path.iterdir()] == ["boxwright-closing"]
    (tmp_path / "boxwright-closing").unlink()
    close({"cache_directory": str(tmp_path), "guard": {}})
    close({"cache_directory": str(tmp_path)})
    assert list(tmp_path.iterdir()) == []
