"""The verb report: shown before it is written, and nothing of a person or a secret in it."""

import json
import stat
import sys
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
    "1764400000.2 secret-rig docker[9]: sudo tried planted-become-pw\n"
    "1764400000.2 secret-rig docker[9]: SECRET-RIG asked erin through bastion.planted.example\n"
    "1764400000.2 secret-rig docker[9]: ssh: connect to host planted-alias port 22: timed out\n"
    "1764400000.3 secret-rig docker[9]: ValueError: No available memory for the cache blocks.\n"
)
RAW = {
    "format": 1,
    "kernel": {"rc": 0, "text": JOURNAL},
    "deployments": [
        {
            "name": "qwen",
            "journal": {"rc": 0, "text": JOURNAL},
            "unit": {},
            "container": None,
            "releases": [
                {
                    "id": "0123456789ab",
                    "link": "current",
                    "state": {},
                    "plan": {},
                    "unit": "[Service]\nUser=alice\n",
                }
            ],
        }
    ],
    "filesystems": [],
}
PLAN = {
    "facts": {"addresses": ["192.0.2.17"], "host": "secret-rig"},
    "changes": [],
    "gates": [],
    "advice": [],
}


BENCH = {
    "deployment": "qwen",
    "runs": [{"id": "20261130T100000Z-0123456789ab", "release": "0123456789ab"}],
    "found": {"last": [{"id": "20261130T100000Z-0123456789ab", "host": "secret-rig", "points": []}]},
}


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    (tmp_path / "hosts.yml").write_text(INVENTORY)
    monkeypatch.chdir(tmp_path)

    def call(*, seen=True, **options):
        results = {
            "diagnosis": [{"raw": RAW}],
            "plan": [{"ansible_facts": {"box_plan": PLAN}}],
            "bench_runs": [{"results": [BENCH, {"failed": True, "msg": "no release of a deployment"}]}],
        }
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
    assert "1764400000.1" in said.out
    assert "replaced by words:" in said.out
    assert "--yes writes it" in said.out
    assert not Path("r.json").exists()


def test_plan_release_logs_facts_and_bench_are_in_it(run):
    run(output="r.json", yes=True)
    [box] = json.loads(Path("r.json").read_text())["boxes"].values()
    assert box["plan"]["gates"] == []
    assert [one["id"] for one in box["release"]["qwen"]] == ["0123456789ab"]
    assert "User=user-" in box["release"]["qwen"][0]["unit"]
    assert "No available memory" in box["logs"]["kernel"]["text"]
    assert "No available memory" in box["logs"]["journal of qwen"]["text"]
    assert box["facts"]["addresses"] == ["address-1"]
    assert box["bench"]["qwen"]["last"]["host"].startswith("host-")
    assert [one["release"] for one in box["bench"]["qwen"]["kept"]] == ["0123456789ab"]
    assert "journal" not in box["readings"]["deployments"][0]


def test_what_is_in_it_is_shown_part_by_part_and_nothing_is_written_unasked(run):
    status, said = run(output="r.json")
    assert (status, Path("r.json").exists()) == (0, False)
    text = " ".join(said.out.split())
    for told in (
        "logs kernel 6 lines; journal of qwen 6 lines",
        "release qwen: 0123456789ab",
        "bench qwen: 1 run, the last whole",
        "diagnosis 1 cause; qwen",
        "plan 0 changes, 0 gates, 0 advice",
    ):
        assert told in text, said.out
    assert "address, " in text
    assert "secrets by *** in" in text
    assert "No available memory" not in said.out
    assert max(map(len, said.out.splitlines())) <= 100


@pytest.mark.parametrize(
    ("answers", "written", "shown"),
    [(["y"], True, 0), (["s", "y"], True, 1), (["s", "s", ""], False, 2), (["n"], False, 0), ([], False, 0)],
)
def test_on_a_terminal_it_is_asked_for_and_can_be_read_whole_first(run, monkeypatch, answers, written, shown):
    def answer(question):
        assert "r.json" in question
        if not answers:
            raise EOFError
        return answers.pop(0)

    monkeypatch.setattr("builtins.input", answer)
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    _, said = run(output="r.json")
    assert Path("r.json").exists() is written
    assert said.out.count('"controller"') == shown
    assert ("No available memory" in said.out) is bool(shown)


def test_json_for_programs(run):
    _, said = run(output="r.json", as_json=True)
    found = json.loads(said.out)
    assert found["file"] is None
    assert found["replaced"]["address"] == 2
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
