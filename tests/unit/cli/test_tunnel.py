"""The tunnel to a box whose way out is the controller: made, made again, refused, and gone with the run."""

import re
import shlex
import stat
import sys
import threading
import time
from pathlib import Path

import pytest

from boxwright.cli import tunnel
from boxwright.errors import UserError

PLAYBOOKS = Path(__file__).resolve().parents[3] / "playbooks"
#: In ssh's place: tells what it was given, does as the file beside it says, ends with its input.
SSH = """
import pathlib, sys
here = pathlib.Path(__file__).parent
with (here / "calls").open("a") as calls:
    calls.write(repr(sys.argv[1:]) + "\\n")
what = (here / "what").read_text()
if what.startswith("at first, ") and len((here / "calls").read_text().splitlines()) > 2:
    what = "stands"
if what != "stands":
    print(what, file=sys.stderr)
    sys.exit(255)
print({stands!r}, flush=True)
sys.stdin.read()
(here / "ended").touch()
"""


@pytest.fixture
def ssh(tmp_path, monkeypatch):
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    (program.parent / "ssh.py").write_text(SSH.format(stands=tunnel.STANDS))
    # The interpreter's path may have a space, which no first line of a script takes.
    words = shlex.join([sys.executable, str(program.parent / "ssh.py")])
    program.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setattr(tunnel, "AGAIN_S", 0.05)
    (program.parent / "what").write_text("stands")
    return program.parent


@pytest.fixture
def inventory(tmp_path):
    path = tmp_path / "hosts.yml"
    path.write_text(
        "all:\n  hosts:\n    far: {box_proxy: controller, ansible_host: 192.0.2.9, ansible_user: me}\n"
        "    near: {box_proxy: 'http://proxy:3128'}\n    plain:\n"
    )
    return path


def calls(ssh):
    path = ssh / "calls"
    return path.read_text().splitlines() if path.exists() else []


#: The role that asks hub and registries, and the modules that fetch by themselves.
ASKING = re.compile(r"name: preflight$|^ +lock_update:", re.MULTILINE)


@pytest.mark.parametrize("playbook", sorted(PLAYBOOKS.glob("*.yml")), ids=lambda path: path.name)
def test_every_playbook_that_asks_or_fetches_has_its_way_out(playbook):
    assert (playbook.name in tunnel.FETCHING) is bool(ASKING.search(playbook.read_text()))


def test_it_is_a_connection_of_its_own_that_tells_when_it_cannot_forward():
    words = tunnel.command(
        "far", {"ansible_host": "192.0.2.9", "ansible_user": "me", "ansible_port": 2222}, 41000
    )
    assert words[0] == "ssh"
    assert words[words.index("-R") + 1] == "127.0.0.1:3129:127.0.0.1:41000"
    for option in ("ExitOnForwardFailure=yes", "ControlPath=none", "BatchMode=yes"):
        assert option in words
    assert words[-6:-1] == ["-p", "2222", "-l", "me", "192.0.2.9"]


def test_only_boxes_that_declare_it_get_one_and_only_while_something_is_fetched(ssh, inventory):
    with tunnel.tunnels("provision.yml", ["near", "plain"], [inventory]):
        pass
    with tunnel.tunnels("logs.yml", ["far"], [inventory]):
        pass
    assert calls(ssh) == []
    with tunnel.tunnels("provision.yml", ["far", "near", "plain"], [inventory]):
        assert len(calls(ssh)) == 1
        assert "192.0.2.9" in calls(ssh)[0]
    assert len(calls(ssh)) == 1


def test_one_that_breaks_is_made_again_and_the_last_one_ends(ssh):
    with tunnel.Tunnel("far", {}, 41000) as made:
        made.await_standing(10)
        began = time.monotonic()
        made._running.terminate()  # as a reboot of the box ends it
        while len(calls(ssh)) < 2:
            assert time.monotonic() - began < 20
            time.sleep(0.02)
        made._running.stdin.write("")
    assert made._running.poll() is not None
    assert not made._thread.is_alive()


def test_a_box_that_does_not_let_it_is_told_with_ways_out(ssh, inventory, monkeypatch):
    monkeypatch.setattr(tunnel, "PATIENCE_S", 0.3)
    (ssh / "what").write_text("Error: remote port forwarding failed for listen port 3129")
    with (
        pytest.raises(UserError, match="does not let its way out") as caught,
        tunnel.tunnels("provision.yml", ["far"], [inventory]),
    ):
        pytest.fail("the run began")
    assert "AllowTcpForwarding" in str(caught.value)
    assert caught.value.where == "far"
    # Another run may have it: what only asks goes on.
    with tunnel.tunnels("plan.yml", ["far"], [inventory]):
        pass


def test_a_box_out_of_reach_is_left_to_the_run_to_tell(ssh, inventory):
    (ssh / "what").write_text("ssh: connect to host 192.0.2.9 port 22: No route to host")
    with tunnel.tunnels("provision.yml", ["far"], [inventory]):
        pass


def test_a_port_that_another_run_held_is_waited_for(ssh, inventory):
    (ssh / "what").write_text("at first, remote port forwarding failed for listen port 3129")
    with tunnel.tunnels("provision.yml", ["far"], [inventory]):
        assert len(calls(ssh)) == 3


def test_a_machine_without_ssh_is_left_to_the_run_to_tell(ssh, inventory, monkeypatch):
    monkeypatch.setenv("PATH", str(ssh / "nothing"))
    raised = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    with tunnel.tunnels("provision.yml", ["far"], [inventory]):
        pass
    assert raised == []
