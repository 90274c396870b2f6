"""Which Docker a host has, seen by its programs, sockets and directories."""

import os
import socket
import subprocess

import pytest
from ansible.module_utils import docker_traces
from ansible.module_utils.command import Result


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A host without any Docker; programs are put into its folder bin."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setattr(docker_traces, "PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(docker_traces, "USER_SOCKETS", str(tmp_path / "user" / "*" / "docker.sock"))
    said = {"ss": "", "systemctl": "LoadState=not-found\nActiveState=inactive\n"}
    monkeypatch.setattr(docker_traces, "run", lambda argv, **kw: Result(0, said[argv[0]], ""))
    return tmp_path, said


def program(host, name, text):
    path = host / "bin" / name
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_nothing_there(host):
    found = docker_traces.look("/nowhere")
    assert found["programs"] == {"docker": None, "dockerd": None}
    assert (found["listeners"], found["users"], found["filled"]) == ([], [], [])


@pytest.mark.parametrize(
    ("text", "podman"),
    [
        ('#!/bin/sh\nexec /usr/bin/podman "$@"\n', True),
        ("\x7fELF podman", False),
        ('#!/bin/sh\nexec /usr/bin/docker.real "$@"\n', False),
    ],
)
def test_a_wrapper_is_read(host, text, podman):
    path = program(host[0], "docker", text)
    assert docker_traces.look("/nowhere")["programs"]["docker"] == {
        "path": str(path),
        "real": str(path),
        "podman": podman,
    }


def test_a_link_to_podman(host):
    program(host[0], "podman", "\x7fELF")
    (host[0] / "bin" / "docker").symlink_to(host[0] / "bin" / "podman")
    assert docker_traces.look("/nowhere")["programs"]["docker"]["podman"] is True


def test_the_program_of_a_unit(host):
    host[1]["systemctl"] = (
        "LoadState=loaded\nActiveState=active\nExecStart={ path=/usr/local/bin/dockerd ; "
        "argv[]=/usr/local/bin/dockerd -H fd:// ; ignore_errors=no ; }\n"
    )
    assert docker_traces.look("/nowhere")["units"]["docker.service"] == {
        "load": "loaded",
        "active": "active",
        "program": "/usr/local/bin/dockerd",
    }


def test_who_listens(host):
    host[1]["ss"] = (
        "u_str LISTEN 0 4096 /run/docker.sock 1 * 0 "
        f'users:(("dockerd",pid={os.getpid()},fd=3),("systemd",pid=1,fd=9))\n'
        'u_str LISTEN 0 4096 /run/other/docker.sock 1 * 0 users:(("x",pid=1,fd=3))\n'
    )
    found = docker_traces.look("/nowhere")["listeners"]
    assert [one["process"] for one in found] == ["dockerd", "systemd"]
    assert ":" in found[0]["cgroup"]


def test_who_has_ended_meanwhile_does_not_listen(host):
    """A child of the daemon, seen before it became another program: it was taken for another one's daemon."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    host[1]["ss"] = (
        "u_str LISTEN 0 4096 /run/docker.sock 1 * 0 "
        f'users:(("dockerd",pid={ended.pid},fd=3),("dockerd",pid={os.getpid()},fd=3))\n'
    )
    found = docker_traces.look("/nowhere")["listeners"]
    assert [one["pid"] for one in found] == [str(os.getpid())]


def test_a_users_daemon_answers_or_is_none(host, tmp_path_factory):
    folder = tmp_path_factory.mktemp("u")
    docker_traces.USER_SOCKETS = str(folder / "*" / "docker.sock")  # the fixture puts it back
    for name in ("1", "2", "3"):
        (folder / name).mkdir()
    (folder / "3" / "docker.sock").write_text("no socket")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(folder / "2" / "docker.sock"))
    with socket.socket(socket.AF_UNIX) as live:
        live.bind(str(folder / "1" / "docker.sock"))
        live.listen()
        (found,) = docker_traces.look("/nowhere")["users"]
    assert found["socket"] == str(folder / "1" / "docker.sock")
    assert found["user"]


def test_a_data_root_that_was_used(tmp_path, host):
    assert docker_traces.look(str(tmp_path))["filled"] == []
    (tmp_path / "image").mkdir()
    assert docker_traces.look(str(tmp_path))["filled"] == [str(tmp_path)]
