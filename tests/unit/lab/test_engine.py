"""What is understood of the machine's container engine, and how it is asked for."""

import grp
import os

import docker
import pytest
import requests

from boxwright.errors import UserError
from boxwright.lab import capabilities, connection, programs
from boxwright.lab import docker as lab_docker


@pytest.mark.parametrize(
    ("bits", "there", "absent"),
    [
        # The engine of a machine whose first process lacks SYS_RESOURCE, and one with every capability.
        (0x1FFFEFFFFFF, {"SYS_ADMIN", "NET_ADMIN", "MKNOD", "AUDIT_READ"}, {"SYS_RESOURCE", "SYS_MODULE"}),
        (0x1FFFFFFFFFF, {"SYS_ADMIN", "SYS_PTRACE"}, {"SYS_RESOURCE", "SYS_TIME", "SYS_RAWIO", "MAC_ADMIN"}),
        # An ordinary container's set: CHOWN to MKNOD, no SYS_ADMIN.
        (0xA80425FB, {"CHOWN", "MKNOD", "SETFCAP"}, {"SYS_ADMIN", "NET_ADMIN"}),
        (0, set(), {"CHOWN"}),
    ],
)
def test_capabilities_of_a_bounding_set(bits, there, absent):
    names = set(capabilities.capability_names(bits))
    assert there <= names
    assert not absent & names


def test_every_capability_has_the_place_of_its_bit():
    assert capabilities.CAPABILITIES[21] == "SYS_ADMIN"
    assert capabilities.CAPABILITIES[24] == "SYS_RESOURCE"
    assert capabilities.CAPABILITIES[37] == "AUDIT_READ"


def test_a_field_of_a_status_file(tmp_path):
    file = tmp_path / "status"
    file.write_text("Name:\tdockerd\nNSpid:\t485\t12\nCapBnd:\t000001fffeffffff\n", encoding="utf-8")
    assert capabilities.status_field(file, "CapBnd") == "000001fffeffffff"
    assert capabilities.status_field(file, "NSpid") == "485\t12"
    assert capabilities.status_field(file, "CapEff") is None
    assert capabilities.status_field(tmp_path / "gone", "CapBnd") is None


@pytest.mark.parametrize(
    ("info", "word"),
    [
        ({"SecurityOptions": ["name=seccomp,profile=default", "name=rootless"]}, "rootless"),
        ({"SecurityOptions": ["name=userns"]}, "userns-remap"),
        ({"SecurityOptions": None, "OperatingSystem": "Docker Desktop"}, "virtual machine"),
        ({"OSType": "windows"}, "windows"),
    ],
)
def test_engines_that_cannot_carry_a_lab(info, word):
    assert word in lab_docker.unfit(info)


def test_an_ordinary_engine_can():
    assert lab_docker.unfit({"SecurityOptions": ["name=apparmor", "name=seccomp"], "OSType": "linux"}) is None


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:2375", "ssh://user@box"])
def test_an_engine_elsewhere_is_refused(monkeypatch, address):
    monkeypatch.setenv("DOCKER_HOST", address)
    with pytest.raises(UserError, match="engine on this machine") as error:
        lab_docker.engine(print)
    assert address in error.value.what
    assert "unset DOCKER_HOST" in error.value.ways_out[0]


def test_a_socket_that_nobody_serves_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(UserError, match="no container engine answers at") as error:
        lab_docker.engine(print)
    assert "No such file" in error.value.why


def test_a_user_outside_the_group_is_told_how_to_join(monkeypatch):
    def refuse(*_arguments, **_options):
        cause = PermissionError(13, "Permission denied")
        raise docker.errors.DockerException("no way") from requests.ConnectionError("aborted", cause)

    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setattr(connection.docker, "DockerClient", refuse)
    monkeypatch.setattr(lab_docker, "regroup", lambda: None)
    monkeypatch.setattr(connection.getpass, "getuser", lambda: "ann")
    with pytest.raises(UserError, match="user ann may not use the container engine") as error:
        lab_docker.engine(print)
    assert error.value.ways_out[0].startswith("sudo usermod -aG docker ann")


def test_a_new_member_of_the_group_runs_the_command_again_as_one(monkeypatch):
    ran = []
    group = grp.struct_group(("docker", "x", 987654, ["ann"]))
    monkeypatch.delenv(connection.REGROUPED, raising=False)
    monkeypatch.setattr(connection.grp, "getgrnam", lambda _: group)
    monkeypatch.setattr(connection.getpass, "getuser", lambda: "ann")
    monkeypatch.setattr(connection.shutil, "which", lambda _: "/usr/bin/sg")
    monkeypatch.setattr(connection.sys, "executable", "/my venv/python")
    monkeypatch.setattr(connection.sys, "orig_argv", ["python", "-m", "boxwright.lab", "up", "lab1"])
    monkeypatch.setattr(connection.os, "execve", lambda *call: ran.append(call))
    connection.regroup()
    (path, argv, environment) = ran[0]
    assert (path, argv[:3]) == ("/usr/bin/sg", ["/usr/bin/sg", "docker", "-c"])
    assert argv[3] == "exec '/my venv/python' -m boxwright.lab up lab1"
    assert environment[connection.REGROUPED] == "1"
    monkeypatch.setenv(connection.REGROUPED, "1")
    connection.regroup()
    assert len(ran) == 1


def test_what_cannot_be_installed_is_said_with_the_command(monkeypatch):
    monkeypatch.setattr(programs, "can_be_root", lambda: False)
    monkeypatch.setattr(programs.shutil, "which", lambda name, path=None: f"/usr/bin/{name}")
    with pytest.raises(UserError, match=r"docker\.io: missing") as error:
        programs.install_packages(["docker.io"], print, why="reasons", otherwise="see the vendor")
    assert error.value.ways_out == ("sudo apt-get install docker.io", "see the vendor")


def test_a_system_without_apt_is_said(monkeypatch):
    monkeypatch.setattr(programs.shutil, "which", lambda name, path=None: None)
    with pytest.raises(UserError, match="no apt-get"):
        programs.install_packages(["docker.io"], print, why="reasons", otherwise="see the vendor")


def test_a_failing_command_shows_its_last_lines(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(UserError, match="could not greet") as error:
        programs.as_root(["sh", "-c", "echo first; echo last >&2; exit 3"], what="greet")
    assert error.value.why == "last"
    with pytest.raises(UserError, match="there is no program"):
        programs.as_root(["no-such-program-here"], what="greet")
    with pytest.raises(UserError, match="no end after 0 s"):
        programs.as_root(["sleep", "5"], what="greet", timeout=0.1)


@pytest.mark.parametrize(
    ("error", "what", "where", "why"),
    [
        (docker.errors.APIError("x", explanation="no space"), "the engine could not dance", None, "no space"),
        (requests.ConnectionError("gone"), "the engine did not answer when it had to dance", None, "gone"),
        (
            OSError(28, "No space left on device", "/c/x"),
            "could not dance",
            "/c/x",
            "No space left on device",
        ),
    ],
)
def test_errors_of_engine_and_disk_reach_the_user_as_such(error, what, where, why):
    @lab_docker.engine_errors("dance")
    def dance():
        raise error

    with pytest.raises(UserError) as told:
        dance()
    assert (told.value.what, told.value.where, told.value.why) == (what, where, why)
