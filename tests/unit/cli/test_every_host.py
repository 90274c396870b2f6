"""Verbs over several boxes: one that is off is said, and holds up no other; a program gets a map."""

import json
import sys
from pathlib import Path

import pytest

import tasks
from boxwright.cli import planning, program, updating
from boxwright.cli.ansible_run import HostReport, RunReport

ROOT = Path(__file__).resolve().parents[3]
HOSTS = """
all:
  vars:
    box_gpus: {model: rtx5090}
    box_deployments: [{name: q, model: qwen3-8b-awq, image: "vllm/vllm-openai:v0.32.0"}]
  hosts:
    box1: {ansible_host: 192.0.2.1}
    box2: {ansible_host: 192.0.2.2}
    box3: {ansible_host: 192.0.2.3}
"""
#: It names no box of the inventory, but one that is to come into it.
ONE_BOX = {"init"}
OFF = {"kind": "unreachable", "message": "ssh: connect to host 192.0.2.2 port 22: Connection refused"}
RECORDED = ROOT / "tests" / "unit" / "facts" / "recorded" / "debian13-rtx5090-virgin.json"
PLAN = {"gates": [], "advice": [], "changes": []}


@pytest.fixture
def called(monkeypatch, capsys, tmp_path):
    """A verb over the three boxes, of which the second is off."""
    (tmp_path / "hosts.yml").write_text(HOSTS)
    results = {
        "plan.yml": ("plan", {"ansible_facts": {"box_plan": PLAN}}),
        "facts.yml": ("host_facts", {"raw": json.loads(RECORDED.read_text())}),
        "update.yml": ("lock_update", {"moves": []}),
    }

    def play(playbook, names, *rest, **more):
        module, result = results[playbook]
        found = {name: HostReport(name, results={module: [result]}) for name in names}
        found.update({name: HostReport(name, failure=OFF) for name in names if name == "box2"})
        return RunReport(4, 1.0, found)

    for module in (planning, updating):
        monkeypatch.setattr(module, "play", play)
    monkeypatch.setattr(planning.drawing, "draw_plan", lambda name, found: print(f"{name}: planned"))

    def call(verb, *words):
        argv = ["invoke", "--search-root", str(ROOT), verb, *words, "--inventory", str(tmp_path)]
        monkeypatch.setattr(sys, "argv", argv)
        status = 0
        try:
            program.main()
        except SystemExit as ended:
            status = ended.code or 0
        return status, *capsys.readouterr()

    return call


@pytest.mark.parametrize("verb", ["plan", "facts", "recommend", "update"])
def test_one_that_is_off_holds_up_no_other(verb, called):
    status, out, err = called(verb, "--all", "--json")
    found = json.loads(out)
    assert status == 1
    assert set(found) == {"box1", "box2", "box3"}
    assert "Connection refused" in found["box2"]["failure"]
    assert all("Connection refused" not in json.dumps(found[name]) for name in ("box1", "box3"))
    status, out, err = called(verb, "--all")
    assert status == 1
    assert "box1" in out
    assert "box3" in out
    assert "box2: " in err
    assert "Connection refused" in " ".join(err.split())


@pytest.mark.parametrize("verb", ["plan", "facts", "recommend", "update"])
def test_one_that_was_named_alone_is_an_error_with_its_ways_out(verb, called):
    status, out, _ = called(verb, "--host", "box2", "--json")
    error = json.loads(out)["error"]
    assert (status, error["where"]) == (1, "box2")
    assert error["ways_out"]


@pytest.mark.parametrize("verb", ["plan", "facts", "recommend"])
def test_of_one_box_a_program_gets_the_thing_itself(verb, called):
    status, out, _ = called(verb, "--host", "box1", "--json")
    assert status == 0
    assert not {"box1", "failure"} & set(json.loads(out))


def test_facts_of_several_are_facts_to_plan_against(called, tmp_path):
    file = tmp_path.parent / f"{tmp_path.name}-facts.json"
    file.write_text(called("facts", "--all", "--json")[1])
    assert called("plan", "--host", "box1,box3", "--facts", str(file))[0] in (0, 3)
    status, _, err = called("plan", "--all", "--facts", str(file))
    assert status == 2
    assert "holds the facts of box1, box3, not of box2" in err


@pytest.mark.parametrize("verb", sorted(tasks.namespace.task_names))
def test_every_verb_that_takes_hosts_takes_all_of_them_or_says_why_not(verb, called):
    options = {argument.name for argument in tasks.namespace[verb].get_arguments()}
    if "host" not in options or verb == "validate":
        return  # validate means every host, where none is named
    assert ("all" in options) == (verb not in ONE_BOX)


def test_what_is_for_one_box_says_so(called):
    status, _, err = called("init", "--host", "you@192.0.2.7", "--all")
    assert status == 2
    assert "init works on one box at a time" in err


def test_recommend_without_a_model_that_could_be_compared_asks_no_box(called):
    status, _, err = called("recommend", "--all", "--model", "nosuch")
    assert (status, "nosuch" in err) == (2, True)


@pytest.mark.parametrize("verb", ["facts", "status", "doctor", "logs", "history", "report"])
@pytest.mark.parametrize("named", [["--all"], ["--host", "box1"]])
def test_a_file_of_hosts_that_ansible_cannot_read_is_refused_before_anything_runs(
    called, tmp_path, verb, named
):
    (tmp_path / "hosts.yml").write_text("all: {hosts: {box1: , off: }}\n")
    status, out, told = called(verb, *named)
    assert status == 2, out + told
    assert "off: is no name: YAML takes it for true or false" in told
    assert '"off", in quotation marks' in told
