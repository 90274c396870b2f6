"""What the lab's hub says of its models, looked up as a host does, and the plan that follows from it."""

from __future__ import annotations

import dataclasses
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.hub_lookup import Hub
from ansible.module_utils.web import Reader

from boxwright import catalog, planner
from boxwright.facts import HostFacts, parse_models
from boxwright.facts.raw import Raw
from boxwright.lab.store import tiny
from boxwright.lab.store.servers.control import Access, Settings, write
from boxwright.planner.lookups import lookups
from boxwright.spec.box import box_from_variables

ROOT = Path(__file__).parents[2]
SCENARIO = ROOT / "roles/model_weights/molecule/default/inventory/hosts.yml"
CATALOG = catalog.load()
MODELS = {"tiny-qwen3": tiny.qwen3, "tiny-qwen3.5-mtp": tiny.qwen3_5, "tiny-qwen3.5-dflash2": tiny.dflash2}


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    """The lab's own server as a process of its own: its address and its control file."""
    folder = tmp_path_factory.mktemp("hub")
    for name, make in MODELS.items():
        (folder / "models/boxwright-lab" / name).mkdir(parents=True)
        make(folder / "models/boxwright-lab" / name)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    argv = [sys.executable, "-m", "servers.hub", "--root", folder / "models", "--bind", "127.0.0.1"]
    argv += ["--port", str(port), "--control", folder / "control.json", "--log", folder / "log"]
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "boxwright/lab/store"))
    with subprocess.Popen([str(word) for word in argv], env=environment) as server:
        try:
            url = f"http://127.0.0.1:{port}"
            wait(url + "/api/models")
            yield url, folder / "control.json"
        finally:
            server.terminate()


def wait(url):
    for _ in range(100):
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(f"{url} does not answer")


def answers(url, asked, token=""):
    """Facts of the models, as the module reads and the parser types them."""
    reader = Reader(10, 40)
    found = [Hub(url, token, reader).model(one["repo"], one.get("revision")) for one in asked]
    return parse_models.models(Raw({"models": json.loads(json.dumps(found))}))


def planned(box, models):
    system = {
        "id": "debian",
        "version_id": "13",
        "codename": "trixie",
        "architecture": "x86_64",
        "kernel": "6",
    }
    offline = planner.offline_facts(box, CATALOG).to_json()
    facts = HostFacts.from_json({**offline, "recorded": True, "os": system})
    return planner.plan(box, dataclasses.replace(facts, models=models), CATALOG)


def test_every_model_is_read_without_its_weights(hub):
    url, _ = hub
    found = answers(url, [{"repo": f"boxwright-lab/{name}"} for name in MODELS])
    assert [one.error for one in found] == [None] * 3
    for one in found:
        weights = next(file for file in one.files if file.path == "model.safetensors")
        # The header and its length are all that is no tensor.
        assert 0 < weights.size - sum(group.bytes for group in one.tensors) < 20_000
        assert weights.sha256


def test_the_scenario_of_the_role_is_a_plan_that_works(hub):
    url, _ = hub
    declared = yaml.safe_load(SCENARIO.read_text())["lab"]["hosts"]["mol-model-weights"]
    variables = {"box_gpus": {"model": "rtx5090", "count": 2}, "box_hub": {"endpoint": url}}
    box = box_from_variables(
        "box1", {**variables, **{k: v for k, v in declared.items() if k.startswith("box_")}}
    )
    asked = [one for one in lookups(box.deployments, CATALOG, {}) if one["repo"].startswith("boxwright-lab/")]
    assert [one["repo"] for one in asked] == [
        "boxwright-lab/tiny-qwen3.5-mtp",
        "boxwright-lab/tiny-qwen3.5-dflash2",
    ]
    made = planned(box, answers(url, asked))
    assert [found.message for found in made.gates] == []
    drafting = next(one for one in made.to_json()["deployments"] if one["name"] == "drafting")
    assert drafting["drafter"]["endpoint"] == url
    assert drafting["drafter"]["directory"].endswith(drafting["drafter"]["revision"])
    assert [file["path"] for file in drafting["drafter"]["files"]] == [
        "README.md",
        "config.json",
        "model.safetensors",
    ]
    assert '"model":"/drafter"' in " ".join(drafting["command"])


@pytest.mark.parametrize(
    ("access", "token", "error", "code"),
    [
        ("gated", "", "unauthorized", "GatedRepo"),
        ("gated", "hf_stranger", "forbidden", "GatedRepo"),
        ("private", "", "unauthorized", "RepoNotFound"),
        ("private", "hf_stranger", "not-found", "RepoNotFound"),
        ("disabled", "", "forbidden", ""),
        ("gated", "hf_wrong", "unauthorized", ""),
        ("gated", "hf_friend", None, ""),
    ],
)
def test_who_may_read_what(hub, access, token, error, code):
    url, control = hub
    users = {"hf_stranger": "stranger", "hf_friend": "friend"}
    write(
        control, Settings(users=users, repositories={"boxwright-lab/tiny-qwen3": Access(access, ("friend",))})
    )
    try:
        (found,) = answers(url, [{"repo": "boxwright-lab/tiny-qwen3"}], token)
    finally:
        write(control, Settings())
    assert (found.error, found.code) == (error, code)
    assert token not in found.detail or not token


def test_a_revision_that_there_is_not(hub):
    (found,) = answers(hub[0], [{"repo": "boxwright-lab/tiny-qwen3", "revision": "v9"}])
    assert (found.error, found.code) == ("not-found", "RevisionNotFound")
