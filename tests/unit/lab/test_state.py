"""What a lab remembers, and how commands keep out of each other's way."""

import shutil
import socket
import threading
import time
from pathlib import Path

import pytest

from boxwright.errors import UserError
from boxwright.lab import depot, hosts
from boxwright.lab.lifecycle import check_null_device
from boxwright.lab.state import HostState, Lab, State, locked
from boxwright.lab.status import HostStatus, LabStatus, size_of


@pytest.fixture
def lab(tmp_path):
    return Lab(root=tmp_path, cache=tmp_path / "cache")


def test_labs_of_different_checkouts_have_different_ids():
    one, same, other = (Lab(root=Path(path), cache=Path("/c")) for path in ("/src/a", "/src/a", "/src/b"))
    assert one.id == same.id != other.id
    assert len(one.id) == 6
    assert one.container("lab1") == f"bw-{one.id}-lab1"


def test_the_cache_follows_the_users_environment(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert Lab.here().cache == Path("/somewhere/boxwright/lab")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert Lab.here().cache == Path.home() / ".cache/boxwright/lab"


def test_state_is_read_as_it_was_written(lab):
    state = State(
        "172.28.0.0/24", "172.28.0.2", {"hub": 1}, {"a": HostState("none", "trixie", "172.28.0.10")}
    )
    state.save(lab)
    assert State.load(lab) == state


def test_no_state_is_an_empty_one(lab):
    assert State.load(lab) == State()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"version": 99}', '{"version": 1, "subnet": 3}'])
def test_a_damaged_state_says_what_to_do(lab, text):
    lab.directory.mkdir()
    lab.state_file.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="cannot be read") as error:
        State.load(lab)
    assert error.value.where == str(lab.state_file)
    assert "remove that file" in error.value.ways_out[0]


def test_a_second_command_waits_and_says_so(tmp_path):
    said, path = [], tmp_path / "dir" / "lock"
    waiting = threading.Event()

    def report(line):
        said.append(line)
        waiting.set()

    def second():
        with locked(path, report, "its work"):
            said.append("entered")

    waiter = threading.Thread(target=second)
    with locked(path, print, "it"):
        waiter.start()
        assert waiting.wait(5)
        assert said == ["lab: waiting for another command to finish its work"]
    waiter.join(5)
    assert said[1:] == ["entered"]


def test_a_lock_whose_directory_was_removed_meanwhile_is_taken_anew(tmp_path):
    path = tmp_path / "dir" / "lock"
    got = threading.Event()

    def second():
        with locked(path, lambda _: None, "it"):
            assert path.exists()
            got.set()

    with locked(path, lambda _: None, "it"):
        waiter = threading.Thread(target=second)
        waiter.start()
        time.sleep(0.2)
        assert not got.is_set()
        shutil.rmtree(path.parent)
    waiter.join(5)
    assert got.is_set()
    assert path.exists()


def test_ports_are_free_different_and_kept():
    state = State()
    depot.choose_ports(state)
    first = dict(state.ports)
    assert set(first) == {"www", "hub", "registry", "registry-private", "tls"}
    assert len(set(first.values())) == len(first)
    depot.choose_ports(state)
    assert state.ports == first


def test_a_depot_that_runs_keeps_its_ports_and_a_new_service_gets_one():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        state = State(ports={"www": taken.getsockname()[1], "hub": 1, "registry": 2})
        depot.choose_ports(state, running=True)
        assert state.ports["www"] == taken.getsockname()[1]
    assert state.ports["registry-private"] > 1023


@pytest.mark.parametrize(
    "name", ["", "-a", "a-", "Lab1", "a_b", "a.b", "a b", "depot", "net", "x" * 41, "läb"]
)
def test_names_that_no_host_can_have(name):
    with pytest.raises(UserError, match="cannot be the name"):
        hosts.HostRequest(name).check()


@pytest.mark.parametrize("name", ["a", "lab1", "mol-nvidia-driver", "0x"])
def test_names_that_a_host_can_have(name):
    hosts.HostRequest(name).check()


def test_a_host_keeps_its_rig():
    state = State(hosts={"lab1": HostState("rtx5090", "trixie", "172.28.0.10")})
    hosts.check_against(state, hosts.HostRequest("lab1"))
    hosts.check_against(state, hosts.HostRequest("lab2", rig="rtx3090x2"))
    with pytest.raises(UserError, match="exists with rig rtx5090 on trixie, not rtx3090x2") as error:
        hosts.check_against(state, hosts.HostRequest("lab1", rig="rtx3090x2"))
    assert "down lab1" in error.value.ways_out[0]


def test_a_damaged_null_device_is_refused(tmp_path):
    check_null_device(Path("/dev/zero"))
    file = tmp_path / "null"
    file.write_text("", encoding="utf-8")
    with pytest.raises(UserError, match="is not a device") as error:
        check_null_device(file)
    assert "mknod -m 666" in error.value.ways_out[0]
    with pytest.raises(UserError, match="is not a device"):
        check_null_device(tmp_path / "missing")


def test_a_null_device_that_others_cannot_write_is_refused(monkeypatch):
    monkeypatch.setattr(Path, "stat", lambda _: type("Stat", (), {"st_mode": 0o020644})())
    with pytest.raises(UserError, match="has mode 0644") as error:
        check_null_device(Path("/dev/null"))
    assert error.value.ways_out == ("sudo chmod 666 /dev/null",)


def test_status_as_a_table():
    host = HostStatus("lab1", "rtx5090", "trixie", "172.28.0.10", "running")
    status = LabStatus(
        "abc",
        "172.28.0.0/24",
        (host,),
        "running",
        "172.28.0.2",
        {"hub": 4000},
        "/c",
        3 * 2**20,
        "/l/ssh_config",
    )
    lines = status.table().splitlines()
    assert [line.split() for line in lines[:3]] == [
        ["host", "rig", "suite", "address", "state"],
        ["lab1", "rtx5090", "trixie", "172.28.0.10", "running"],
        ["depot", "-", "-", "172.28.0.2", "running"],
    ]
    assert lines[3:] == ["depot on this machine: hub 127.0.0.1:4000", "cache: 3 MiB in /c"]
    assert status.to_json()["hosts"][0]["name"] == "lab1"


def test_the_size_of_a_directory(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "x").write_bytes(b"12345")
    (tmp_path / "a" / "b" / "y").write_bytes(b"123")
    (tmp_path / "link").symlink_to("nowhere")
    assert size_of(tmp_path) == 8 + len("nowhere")
    assert size_of(tmp_path / "missing") == 0
