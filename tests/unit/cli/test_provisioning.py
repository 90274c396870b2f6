"""The line that a person copies: it survives hostile names and never holds the key."""

import json
import shlex
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxwright.cli import lab
from boxwright.cli.ansible_run import HostReport, RunReport
from boxwright.cli.provisioning import _endpoint, curl, summary
from boxwright.cli.ssh_trouble import explain

ENDPOINT = {"model": "q", "url": "http://192.0.2.7:8000/v1", "loopback": False, "prompt": "Say hello."}


class Declared:
    """An inventory with one host."""

    def __init__(self, **variables):
        self._variables = variables

    def variables(self, host):
        return self._variables


def test_line_asks_the_endpoint():
    line = curl("box1", ENDPOINT, [], ["mine"])
    assert line.startswith(
        "./invoke key --host box1 --inventory mine --header | curl -s http://192.0.2.7:8000/v1/chat"
    )
    assert " -H @- " in line


@pytest.mark.parametrize(
    ("serves", "path", "keys"),
    [
        ("text", "/v1/chat/completions", {"messages", "temperature", "max_tokens"}),
        ("embeddings", "/v1/embeddings", {"input"}),
        ("reranking", "/v1/rerank", {"query", "documents"}),
    ],
)
def test_line_asks_for_what_is_served(serves, path, keys):
    words = shlex.split(curl("box1", {**ENDPOINT, "serves": serves}, [], []))
    assert f"http://192.0.2.7:8000{path}" in words
    assert set(json.loads(words[words.index("-d") + 1])) == {"model", *keys}


def test_loopback_is_asked_on_the_box():
    line = curl("box1", {**ENDPOINT, "loopback": True}, ["ssh", "-l", "me", "box1"], [])
    assert " | ssh -l me box1 " in line


@given(st.text(min_size=1), st.text(min_size=1))
def test_values_stay_in_their_arguments(model, prompt):
    words = shlex.split(curl("box1", {**ENDPOINT, "model": model, "prompt": prompt}, [], []))
    assert words[:6] == ["./invoke", "key", "--host", "box1", "--header", "|"]
    body = json.loads(words[words.index("-d") + 1])
    assert (body["model"], body["messages"][0]["content"]) == (model, prompt)


@pytest.mark.parametrize("as_json", [True, False])
def test_the_lab_speaks_beside_json(as_json, monkeypatch, capsys):
    monkeypatch.setattr("boxwright.lab.status", lambda: SimpleNamespace(hosts=[]))
    monkeypatch.setattr("boxwright.lab.up", lambda requests, report: report("lab: ready"))
    lab.ensure(["lab1"], as_json=as_json)
    said = capsys.readouterr()
    assert (said.err if as_json else said.out) == "lab: ready\n"
    assert (said.out if as_json else said.err) == ""


@pytest.mark.parametrize(
    ("roles", "failed_in", "check", "told"),
    [
        (["preflight", "nvidia_driver"], None, False, ["of two models"]),
        (["preflight", "nvidia_driver", "engine"], "engine", False, ["of two models"]),
        (["preflight", "nvidia_driver"], "nvidia_driver", False, ["reboot", "of two models"]),
        (["preflight"], "preflight", False, ["reboot", "of two models"]),
        (["preflight", "nvidia_driver as it was"], None, False, ["reboot", "of two models"]),
        (["preflight", "nvidia_driver"], None, True, ["reboot", "of two models"]),
    ],
)
def test_what_the_run_has_mended_is_advised_no_more(roles, failed_in, check, told):
    advice = [{"id": "reboot-is-due", "message": "reboot"}, {"id": "other", "message": "of two models"}]
    plan = {"ansible_facts": {"box_plan": {"changes": [], "deployments": [], "advice": advice}}}
    failure = {"role": failed_in, "message": "no"} if failed_in else None
    came = [{"role": role.removesuffix(" as it was"), "visited": "as it was" not in role} for role in roles]
    host = HostReport("box1", results={"plan": [plan]}, roles=came, failure=failure)
    report = RunReport(0, 1.0, {"box1": host})
    assert summary("box1", report, Declared(), [], check=check)["advice"] == told


@pytest.mark.parametrize(
    ("planned", "unplanned"),
    [
        ([], ["engine", "gpu_tuning"]),
        ([{"role": "engine"}], ["gpu_tuning"]),
        ([{"role": "engine"}, {"role": "gpu_tuning"}], []),
        (None, []),
    ],
)
def test_what_no_plan_listed_is_told(planned, unplanned):
    tasks = [
        {"role": "engine", "task": "a"},
        {"role": "gpu_tuning", "task": "b"},
        {"role": "engine", "task": "c"},
    ]
    plan = {"ansible_facts": {"box_plan": {"changes": planned, "deployments": [], "advice": []}}}
    report = RunReport(0, 1.0, {"box1": HostReport("box1", 3, 9, tasks, [], {"plan": [plan]})})
    assert summary("box1", report, Declared(), [])["unplanned"] == unplanned


@pytest.mark.parametrize(
    ("bind", "url", "loopback"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000/v1", True),
        ("127.0.0.2", "http://127.0.0.2:8000/v1", True),
        ("::1", "http://[::1]:8000/v1", True),
        ("0.0.0.0", "http://192.0.2.7:8000/v1", False),
        ("::", "http://192.0.2.7:8000/v1", False),
        ("192.0.2.9", "http://192.0.2.9:8000/v1", False),
    ],
)
def test_an_endpoint_is_shown_as_it_is_reached(bind, url, loopback):
    deployment = {"name": "q", "served_name": "q", "bind": bind, "port": 8000}
    found = _endpoint("box1", deployment, {}, {"facts": {"addresses": ["192.0.2.7"]}})
    assert (found["url"], found["loopback"]) == (url, loopback)


def test_a_failure_of_the_way_to_the_box_gets_its_ways_out():
    failure = {"kind": "failed", "message": "Task failed: Missing sudo password"}
    explain("box1", failure, Declared(ansible_host="192.0.2.7"))
    assert failure["what"] == "sudo asks for a password there"
    assert failure["ways_out"][0].startswith("--ask-become-pass")


def test_another_failure_gets_what_was_left_and_what_to_type():
    failure = {
        "kind": "failed",
        "role": "engine",
        "message": "no room on /\nmore",
        "left": ["nothing was changed"],
        "next": ["./invoke doctor --host box1"],
    }
    explain("box1", failure, Declared())
    assert failure["what"] == "failed at engine: no room on /"
    assert failure["left"] == ["nothing was changed"]
    assert failure["ways_out"] == ["./invoke doctor --host box1"]


@pytest.mark.parametrize(
    ("bind", "addresses", "url"),
    [
        ("::", ["192.0.2.7", "fd00::7"], "http://[fd00::7]:8000/v1"),
        ("0.0.0.0", ["fd00::7", "192.0.2.7"], "http://192.0.2.7:8000/v1"),
        ("::", ["fd00::7"], "http://[fd00::7]:8000/v1"),
    ],
)
def test_an_endpoint_is_shown_by_an_address_of_its_own_kind(bind, addresses, url):
    deployment = {"name": "q", "served_name": "q", "bind": bind, "port": 8000}
    assert _endpoint("box1", deployment, {}, {"facts": {"addresses": addresses}})["url"] == url
