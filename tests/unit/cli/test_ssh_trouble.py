"""What ssh, sudo and Ansible say of a box that cannot be visited, and what a person is told."""

from __future__ import annotations

import pytest

from boxwright.cli.ssh_route import Route
from boxwright.cli.ssh_trouble import recognized, trouble
from boxwright.spec.address import Address

BOX = Address("192.0.2.17", "me", 2222)
SENT = (
    'Task failed: Data could not be sent to remote host "192.0.2.17". '
    "Make sure this host can be reached over ssh: "
)
LOST = "Module result deserialization failed: No start of json char found\n"


@pytest.mark.parametrize(
    ("said", "what", "way"),
    [
        (
            SENT + "Host key verification failed.",
            "does not know the box's host key",
            "ssh -p 2222 me@192.0.2.17",
        ),
        (
            SENT + "@@@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @@@\nHost key verification failed.",
            "shows another host key",
            "ssh-keygen -R '[192.0.2.17]:2222'",
        ),
        (SENT + "me@192.0.2.17: Permission denied (publickey).", "lets nobody in", "ssh-copy-id"),
        (SENT + "ssh: connect to host 192.0.2.17 port 22: Connection timed out", "does not answer", "is on"),
        (SENT + "ssh: connect to host 192.0.2.17 port 22: No route to host", "does not answer", "is on"),
        (SENT + "Connection timed out during banner exchange", "does not answer", "is on"),
        (SENT + "ssh: connect to host 192.0.2.17 port 22: Connection refused", "nothing answers", "sshd"),
        (
            SENT + "ssh: Could not resolve hostname x: Name or service not known",
            "no host of this name",
            "spelt",
        ),
        (
            SENT + "kex_exchange_identification: Connection closed by remote host",
            "ends the connection",
            "sshd that listens there",
        ),
        ("Task failed: Missing sudo password", "sudo asks for a password", "NOPASSWD"),
        ("Task failed: Missing sudo password", "sudo asks for a password", "--ask-become-pass"),
        ("Task failed: Incorrect sudo password", "not the one that sudo wants", "ansible_become_password"),
        (LOST + "sudo: 1 incorrect password attempt", "not the one that sudo wants", "--ask-become-pass"),
        (LOST + "sudo: a password is required", "sudo asks for a password", "NOPASSWD"),
        (LOST + "me is not in the sudoers file.", "may not use sudo", "usermod -aG sudo"),
        (LOST + "/bin/sh: 1: sudo: not found", "no sudo on the box", "root@192.0.2.17"),
        (
            "The module interpreter '/usr/bin/python3' was not found.\n"
            "/bin/sh: 1: /usr/bin/python3: not found",
            "no Python on the box",
            "python3",
        ),
        ("no room on /", "no room on /", ""),
        ("", "without a message", ""),
    ],
)
def test_told(said: str, what: str, way: str) -> None:
    error = trouble("box1", {"message": said}, BOX)
    assert error.where == "box1"
    assert what in error.what
    assert way in "\n".join(error.ways_out)
    assert bool(error.ways_out) == bool(way)
    assert "Data could not be sent" not in str(error)


def test_the_name_stands_in_where_no_address_is_known() -> None:
    error = trouble("box1", {"message": "Host key verification failed."})
    assert any(way.startswith("ssh box1 true") for way in error.ways_out)


def test_ssh_that_took_nothing_and_had_not_yet_ended():
    """A race within Ansible, seen on a busy machine: no cause is in what it says."""
    error = trouble("box1", {"message": SENT.rstrip(": ") + "."}, BOX)
    assert error.what == "the box does not answer"


@pytest.mark.parametrize(
    ("said", "way"),
    [
        ("ssh: connect to host 192.0.2.17 port 22: Connection refused", "its ansible_port in the inventory"),
        ("me@192.0.2.17: Permission denied (publickey).", "its ansible_user in the inventory"),
        (LOST + "/bin/sh: 1: sudo: not found", "ansible_user: root in the inventory"),
    ],
)
def test_a_host_of_the_inventory_is_mended_there_for_its_name_is_no_address(said: str, way: str) -> None:
    ways = "\n".join(trouble("box1", {"message": said}).ways_out)
    assert way in ways
    assert "--host" not in ways


def test_what_a_host_says_cannot_steer_the_terminal() -> None:
    assert "\x1b" not in str(trouble("box1", {"message": "\x1b[2Jgone\rover"}))


def test_a_host_that_was_not_visited() -> None:
    assert trouble("box1", None).what == "the host was not visited"


def test_a_port_beside_an_ipv6_address() -> None:
    refused = {"message": SENT + "ssh: connect to host 2001:db8::1 port 1: Connection refused"}
    assert "[2001:db8::1]:PORT" in str(trouble("box1", refused, Address("2001:db8::1", "", 1)))


def test_ways_out_of_what_is_no_trouble_with_the_connection() -> None:
    assert trouble("box1", {"message": "no such file"}, otherwise=("provision it",)).ways_out == (
        "provision it",
    )
    assert trouble("box1", {"message": "Connection refused"}, otherwise=("provision it",)).ways_out != (
        "provision it",
    )


BEHIND = Route("192.0.2.17", 2222, "me@gate.example:2200")


@pytest.mark.parametrize(
    ("said", "what", "way"),
    [
        (
            "ssh: connect to host gate.example port 2200: Connection refused "
            "Connection closed by UNKNOWN port 65535",
            "jump host gate.example, and there: nothing answers on its SSH port",
            "its Port in ~/.ssh/config",
        ),
        (
            "ssh: Could not resolve hostname gate.example: Name or service not known",
            "jump host gate.example, and there: there is no host of this name",
            "spelt",
        ),
        (
            "me@gate.example: Permission denied (publickey). Connection closed by UNKNOWN port 65535",
            "jump host gate.example, and there: the box lets nobody in",
            "IdentityFile",
        ),
        (
            "kex_exchange_identification: Connection closed by remote host "
            "Connection closed by UNKNOWN port 65535",
            "the connection through the jump host me@gate.example:2200 ended before the box was reached",
            "reaches its port 2222",
        ),
        (
            "No ED25519 host key is known for [gate.example]:2200 and you have requested strict checking. "
            "Host key verification failed.",
            "jump host gate.example, and there: ssh does not know the box's host key",
            "ssh gate.example true",
        ),
        (
            "channel 0: open failed: connect failed: No route to host stdio forwarding failed "
            "Connection closed by UNKNOWN port 65535",
            "the jump host me@gate.example:2200 lets ssh in, and cannot reach the box from there",
            "reaches its port 2222",
        ),
        # Said of the box itself, which is behind one.
        ("me@192.0.2.17: Permission denied (publickey).", "the box lets nobody in", "ssh-copy-id"),
    ],
)
def test_the_jump_host_is_named(said: str, what: str, way: str) -> None:
    error = recognized("box1", said, BOX, BEHIND)
    assert error is not None
    assert what in error.what
    assert way in "\n".join(error.ways_out)
    if "jump" not in what:
        assert "jump" not in error.what


def test_no_jump_host_is_made_up() -> None:
    said = "ssh: connect to host 10.0.0.9 port 22: Connection refused"
    error = recognized("box1", said, BOX, Route("10.0.0.9", 22))
    assert error is not None
    assert "jump" not in str(error)
