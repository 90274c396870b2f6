"""A run over 16 boxes of which one is off and one hangs: it ends in bounded time, and names both.

The boxes are this machine, looked at only. The one that is off is a port at which nobody speaks SSH: whoever
connects waits. On the one that hangs Python never comes to its end.
"""

import json
import socket
import stat
import sys

import pytest
import yaml

from boxwright.cli import provisioning

BOXES = [f"box{number}" for number in range(14)]
OFF, HANGS = "off", "hangs"
#: Seconds: for a connection to stand, and for a box to answer.
CONNECTING_S, ANSWERING_S = 3, 4


@pytest.fixture
def inventory(tmp_path, monkeypatch):
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\nexec sleep 120\n")
    python.chmod(stat.S_IRWXU)
    here = {
        "ansible_connection": "local",
        "ansible_become": False,
        "ansible_python_interpreter": sys.executable,
        "box_deployments": [{"name": "qwen", "model": "qwen3-8b", "image": "vllm/vllm-openai:v0.29.0"}],
        "box_hub": {"endpoint": "http://127.0.0.1:9"},
    }
    monkeypatch.setenv("ANSIBLE_TIMEOUT", str(CONNECTING_S))
    monkeypatch.setenv("ANSIBLE_SSH_RETRIES", "0")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hosts = dict.fromkeys(BOXES, here)
        hosts[HANGS] = {
            **here,
            "ansible_python_interpreter": str(python),
            "_preflight_patience_s": ANSWERING_S,
        }
        address = {"ansible_host": "127.0.0.1", "ansible_port": silent.getsockname()[1]}
        hosts[OFF] = {**here, **address, "ansible_connection": "ssh"}
        (tmp_path / "hosts").mkdir()
        (tmp_path / "hosts" / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
        yield tmp_path / "hosts"


def test_sixteen_boxes_of_which_one_is_off_and_one_hangs(inventory, capsys):
    with pytest.raises(SystemExit) as end:
        provisioning.provision([], [str(inventory)], every=True, check=True, as_json=True)
    found = json.loads(capsys.readouterr().out)["hosts"]
    assert sorted(found) == sorted([*BOXES, OFF, HANGS])
    assert end.value.code == 1
    assert found[OFF]["failure"]["kind"] == "unreachable"
    assert found[OFF]["failure"]["what"] == "the box does not answer"
    assert found[HANGS]["failure"]["kind"] == "failed"
    assert f"gave no answer within {ANSWERING_S} s" in found[HANGS]["failure"]["message"]
    # This machine has no cards: that much was found out of each of the others.
    assert {found[name]["failure"]["kind"] for name in BOXES} == {"refused"}
