"""Going back by hand: what a person and a program read of it. The work itself is the module's."""

import json

import pytest

from boxwright.cli import rollback as verb
from boxwright.cli.ansible_run import HostReport, RunReport

RELEASES = [
    {"id": "bbbbbbbbbbbb", "made": "2026-11-02T00:00:00Z", "image": "vllm/vllm-openai:v2", "current": False},
    {"id": "aaaaaaaaaaaa", "made": "2026-11-01T00:00:00Z", "image": "vllm/vllm-openai:v1", "current": True},
]
RESULT = {
    "changed": True,
    "image": "vllm/vllm-openai:v1",
    "releases": RELEASES,
    "results": [{"name": "qwen", "release": "aaaaaaaaaaaa", "answer": "It is\nParis."}],
}
HOSTS = """
all:
  hosts:
    box1:
      ansible_host: 192.0.2.7
      box_deployments: [{name: qwen, model: qwen3-8b-awq, image: "vllm/vllm-openai:v0.29.0"}]
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """run(report of the host, **options) -> the variables that the playbook got."""
    (tmp_path / "hosts.yml").write_text(HOSTS)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def call(report, **options):
        given = {}

        def play(name, hosts, paths, *, quiet, variables):
            given.update(variables, playbook=name)
            # It is in the history of the box.
            assert given.pop("boxwright_run")["verb"] == "rollback"
            return RunReport(0, 1.0, {"box1": report})

        monkeypatch.setattr(verb, "play", play)
        verb.rollback(["box1"], [str(tmp_path / "hosts.yml")], **options)
        return given

    return call


def test_what_serves_now_and_what_there_is_besides(run, capsys):
    given = run(HostReport("box1", results={"engine_rollback": [RESULT]}))
    assert given == {"playbook": "rollback.yml"}
    said = capsys.readouterr().out
    assert "box1: qwen serves release aaaaaaaaaaaa (vllm/vllm-openai:v1)" in said
    assert "answered  It is Paris." in said
    assert "current   aaaaaaaaaaaa  2026-11-01" in said
    assert "bbbbbbbbbbbb  2026-11-02" in said
    assert "provision brings back what the inventory declares" in said


def test_what_was_asked_for_reaches_the_box(run, capsys):
    given = run(
        HostReport("box1", results={"engine_rollback": [RESULT]}), deployment="qwen", to="aaaa", as_json=True
    )
    assert given == {"playbook": "rollback.yml", "rollback_deployment": "qwen", "rollback_to": "aaaa"}
    found = json.loads(capsys.readouterr().out)["hosts"]["box1"]
    assert (found["changed"], found["serving"]["release"], found["failure"]) == (True, "aaaaaaaaaaaa", None)


def test_a_failure_is_one(run, capsys):
    with pytest.raises(SystemExit) as ended:
        run(HostReport("box1", failure={"message": "NOTHING SERVES qwen NOW"}), as_json=True)
    assert ended.value.code == 1
    found = json.loads(capsys.readouterr().out)["hosts"]["box1"]
    assert (found["serving"], found["failure"]["message"]) == (None, "NOTHING SERVES qwen NOW")


def test_a_box_that_is_off_is_told_with_the_way_out(run, capsys):
    off = {"kind": "unreachable", "message": "ssh: connect to host box1 port 22: No route to host"}
    with pytest.raises(SystemExit):
        run(HostReport("box1", failure=off))
    said = " ".join(capsys.readouterr().out.split())
    assert "box1: the box does not answer" in said
    assert "see that it is on and that this works: ssh box1 true" in said
