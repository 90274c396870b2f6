"""The verb report: shown before it is written, and nothing of a person or a secret in it."""

import json
import stat
from pathlib import Path

import pytest

from boxwright.cli import reporting
from boxwright.cli.ansible_run import HostReport, RunReport
from boxwright.errors import UserError

PLANTED = (
    "planted-api-key-1", "hf_plantedtoken12345", "planted-become-pw", "192.0.2.17", "alice", "secret-rig",
    "planted-proxy-pw", "2001:db8::5", "SECRET-RIG", "erin", "bastion.planted.example", "planted-alias",
)  # fmt: skip
INVENTORY = """
all:
  hosts:
    secret-rig:
      ansible_host: 192.0.2.17
      ansible_user: alice
      ansible_ssh_common_args: -o ControlMaster=no -J erin@bastion.planted.example:2222
      ansible_become_password: planted-become-pw
      box_hub: {token: hf_plantedtoken12345}
      box_proxy: http://me:planted-proxy-pw@proxy.alice.example:3128
      box_deployments:
        - {name: qwen, model: qwen3-8b-awq, image: "vllm/vllm-openai:v0.32.0", api_key: planted-api-key-1}
"""
JOURNAL = (
    "1764400000.1 secret-rig docker[9]: key planted-api-key-1 at 192.0.2.17, 2001:db8::5, /home/alice/x\n"
    "1764400000.2 secret-rig docker[9]: via proxy.alice.example with hf_plantedtoken12345 planted-proxy-pw\n"
    "1764400000.2 secret-rig docker[9]: SECRET-RIG asked erin through bastion.planted.example\n"
    "1764400000.2 secret-rig docker[9]: ssh: connect to host planted-alias port 22: timed out\n"
    "1764400000.3 secret-rig docker[9]: ValueError: No available memory for the cache blocks.\n"
)
RAW = {
    "format": 1,
    "kernel": {"rc": 0, "text": JOURNAL},
    "deployments": [{"name": "qwen", "journal": {"rc": 0, "text": JOURNAL}, "unit": {}, "container": None}],
    "filesystems": [],
}
PLAN = {
    "facts": {"addresses": ["192.0.2.17"], "host": "secret-rig"},
    "changes": [],
    "gates": [],
    "advice": [],
}


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    (tmp_path / "hosts.yml").write_text(INVENTORY)
    monkeypatch.chdir(tmp_path)

    def call(*, seen=True, **options):
        results = {"diagnosis": [{"raw": RAW}], "plan": [{"ansible_facts": {"box_plan": PLAN}}]}
        off = {
            "kind": "unreachable",
            "message": "ssh: connect to host 192.0.2.17: timed out",
            "role": None,
        }
        host = HostReport("secret-rig", results=results if seen else {}, failure=None if seen else off)
        monkeypatch.setattr(reporting, "play", lambda *_, **__: RunReport(0, 1.0, {"secret-rig": host}))
        status = 0
        try:
            reporting.report(["secret-rig"], [str(tmp_path)], **options)
        except SystemExit as error:
            status = error.code
        return status, capsys.readouterr()

    return call


def test_nothing_planted_is_in_the_file_and_the_fault_is(run, tmp_path):
    status, said = run(output="r.json", yes=True)
    text = Path("r.json").read_text()
    assert status == 0
    assert [secret for secret in PLANTED if secret in text + said.out] == []
    assert "No available memory for the cache blocks" in text
    assert stat.S_IMODE(Path("r.json").stat().st_mode) == 0o600
    [name] = json.loads(text)["boxes"]
    assert name.startswith("host-")
    assert json.loads(text)["boxes"][name]["diagnosis"]["causes"][0]["id"] == "no-memory-for-kv-cache"


def test_it_is_shown_before_it_is_written(run):
    status, said = run(output="r.json", show=True)
    assert status == 0
    assert "No available memory" in said.out
    assert "replaced by words:" in said.out
    assert "--yes writes it" in said.out
    assert not Path("r.json").exists()


def test_json_for_programs(run):
    _, said = run(output="r.json", as_json=True)
    found = json.loads(said.out)
    assert found["file"] is None
    assert found["replaced"]["address"] == 1
    assert not any(secret in said.out for secret in PLANTED)


def test_a_box_that_is_off_is_told_and_named_by_no_address(run):
    status, said = run(output="r.json", yes=True, seen=False)
    assert status == 1
    assert "192.0.2.17" not in Path("r.json").read_text()
    assert "could not be looked at" in said.err


def test_no_file_is_overwritten(run):
    Path("r.json").write_text("mine")
    with pytest.raises(UserError, match="already"):
        run(output="r.json", yes=True)
    assert Path("r.json").read_text() == "mine"


def test_a_place_that_cannot_be_written_is_told(run):
    with pytest.raises(UserError, match="there is no directory nowhere"):
        run(output="nowhere/r.json", yes=True)
