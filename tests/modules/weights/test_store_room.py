"""Room on the filesystems, and one worker at a time."""

import threading
import time

import pytest
from ansible.module_utils import store_room
from ansible.module_utils.store_room import Need


def test_fits(tmp_path):
    assert store_room.shortage([Need(str(tmp_path / "not" / "yet"), 1000, "a")], 1000) is None


def test_needs_of_one_filesystem_are_added(tmp_path):
    free = store_room.free(str(tmp_path))
    needs = [
        Need(str(tmp_path / "a"), free // 2 + 10**6, "a/b"),
        Need(str(tmp_path / "b"), free // 2 + 10**6, "c/d"),
    ]
    assert store_room.shortage(needs[:1], 0) is None
    told = store_room.shortage(needs, 0)
    assert "a/b, c/d" in told
    assert "free now" in told


def test_nothing_needed_always_fits(tmp_path):
    assert store_room.shortage([Need(str(tmp_path), 0, "a")], 10**18) is None


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1500, "1.5 kB"),
        (2_400_000, "2.4 MB"),
        (18e9, "18.0 GB"),
        (2e12, "2.0 TB"),
    ],
)
def test_human(size, said):
    assert store_room.human(size) == said


def test_one_at_a_time(tmp_path):
    lock, order, waited = str(tmp_path / "locks" / "a.lock"), [], []

    def second():
        with store_room.alone(lock, waited.append, 30):
            order.append("second")

    with store_room.alone(lock, waited.append, 30):
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.3)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]
    assert "another run (process " in waited[0]


def test_waiting_ends(tmp_path):
    lock = str(tmp_path / "a.lock")
    with (
        store_room.alone(lock, lambda _: None, 5),
        pytest.raises(store_room.BusyError, match="another run"),
        store_room.alone(lock, lambda _: None, 0),
    ):
        pass


def test_disk_use(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a").write_bytes(b"x" * 5000)
    with (tmp_path / "sparse").open("wb") as stream:
        stream.truncate(10**9)
    total, sizes = store_room.disk_use(str(tmp_path))
    assert sizes["sub/a"] == 5000
    assert total < 10**6
