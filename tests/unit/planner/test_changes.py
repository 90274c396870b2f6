"""The change list: nothing for a host as declared, exactly the deviation for one that differs."""

# The dash of a range is one.
# ruff: noqa: RUF001

from __future__ import annotations

import base64
import copy
import dataclasses
import hashlib
import importlib.util
import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from boxwright import catalog, planner
from boxwright.facts import HostFacts
from boxwright.planner.changes.drift import ROLES
from boxwright.spec.box import box_from_variables


def beside(name):
    """A file beside this one as a module."""
    spec = importlib.util.spec_from_file_location(f"planner_{name}", Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


strategies, declared_host = beside("strategies"), beside("declared_host")
as_declared, COMMIT, DOCKER_PACKAGES = declared_host.as_declared, declared_host.COMMIT, declared_host.DOCKER
CATALOG = catalog.load()
#: As far as a plan looks into a certificate; and the beginning of its fingerprint.
_BODY = base64.b64encode(b"an authority").decode()
AUTHORITY = f"-----BEGIN CERTIFICATE-----\n{_BODY}\n-----END CERTIFICATE-----\n"
DIGEST = hashlib.sha256(b"an authority").hexdigest()[:12]
SPEC = {
    "box_gpus": {"model": "rtx5090", "count": 2},
    "nvidia_driver_cuda_toolkit": "12.8",
    "gpu_tuning_max_clock_mhz": 2100,
    "gpu_tuning_power_limit_w": 450,
    "container_runtime_daemon_config": {"log-driver": "local", "insecure-registries": ["a:5000"]},
    "box_proxy": "http://me:secret@proxy:3128",
    "box_deployments": [
        {"name": "q", "model": "qwen3-8b-awq", "image": "vllm/vllm-openai:v0.29.0", "context": 8192},
    ],
}
REPO = CATALOG.models["qwen3-8b-awq"].repo
DRIVER_PACKAGES = {"nvidia-driver-cuda": "580.105.08-1", "cuda-toolkit-12-8": "12.8.1-1"}


def planned(spec, plain):
    box = box_from_variables("box1", spec)
    return planner.plan(box, HostFacts.from_json(plain), CATALOG)


def texts(made):
    return [change.text for change in made.changes]


@pytest.fixture
def facts():
    return as_declared(box_from_variables("box1", SPEC))


def put(plain, path, value):
    """Set a value in the facts by its path; the last step may be new."""
    *steps, last = [int(step) if step.isdigit() else step for step in path.split("/")]
    for step in steps:
        plain = plain[step]
    if value is None and isinstance(plain, dict) and last in plain and isinstance(plain[last], dict):
        del plain[last]
    else:
        plain[last] = value


def test_a_host_as_declared_has_nothing_to_do(facts):
    assert texts(planned(SPEC, facts)) == []


def test_without_facts_nothing_is_known():
    box = box_from_variables("box1", SPEC)
    made = planner.plan(box, planner.offline_facts(box, CATALOG), CATALOG)
    assert made.changes is None
    assert made.to_json()["changes"] is None


RELEASE = "new release, about 2 min without service"
#: What of the host is otherwise, and the changes that it takes.
HOSTS = {
    "older branch": (
        {"driver/installed_version": "570.195.03", "driver/loaded_version": "570.195.03",
         "kept/cdi_driver": "570.195.03"},
        ["driver 570.195.03 -> branch 580, reboot",
         "driver known to containers 570.195.03 -> branch 580"]),
    "mismatch": (
        {"driver/loaded_version": "580.82.07", "driver/state": "mismatch"},
        ["loaded driver 580.82.07 -> 580.105.08, reboot"]),
    "not loaded": (
        {"driver/loaded_version": None, "driver/state": "installed"}, ["loaded driver none -> 580.105.08"]),
    "other modules": ({"driver/flavor": "proprietary"}, ["kernel modules proprietary -> open, reboot"]),
    "hold lifted": (
        {"driver/held": ["cuda-toolkit-12-8", *DOCKER_PACKAGES]},
        ["hold of nvidia-driver-cuda lifted -> held"]),
    "package purged": (
        {"kept/groups/nvidia-driver/declared": ["nvidia-driver-cuda", "nvidia-persistenced"]},
        ["package nvidia-persistenced none -> installed"]),
    "driver by a person": (
        {"kept/groups/nvidia-driver": None}, ["hold of the driver's packages none -> held"]),
    "another mirror": (
        {"kept/sources/cuda": ["https://mirror.example.org/cuda/debian13/"]},
        ["package source of the driver https://mirror.example.org/cuda/debian13/ -> "
         "https://developer.download.nvidia.com/compute/cuda/repos"]),
    "no pin": ({"kept/pins": {}}, ["version that apt prefers for the driver none -> 580.*"]),
    "pin of another branch": (
        {"kept/pins/nvidia-driver": "570.*"}, ["version that apt prefers for the driver 570.* -> 580.*"]),
    "nouveau may come": (
        {"kept/files": ["/etc/modules-load.d/boxwright-nvidia.conf",
                        "/etc/systemd/system/boxwright-gpu-tuning.service"]},
        ["nouveau allowed -> off"]),
    "nouveau is there": ({"driver/nouveau": True}, ["nouveau on -> off, reboot"]),
    "not at boot": (
        {"kept/files": ["/etc/modprobe.d/boxwright-nvidia.conf",
                        "/etc/systemd/system/boxwright-gpu-tuning.service"]},
        ["loading of the driver at boot off -> on"]),
    "no CUDA toolkit": (
        {"driver/packages": {"nvidia-driver-cuda": "580.105.08-1"},
         "kept/groups/nvidia-driver/declared": ["nvidia-driver-cuda"]},
        ["CUDA toolkit none -> 12.8"]),
    "Docker stopped": ({"docker/running": False}, ["Docker Engine stopped -> running"]),
    "no container toolkit": (
        {"docker/toolkit_version": None, "docker/packages": {"docker.io": "26.1.5-1"}},
        ["NVIDIA container toolkit none -> the newest"]),
    "hold of Docker lifted": (
        {"driver/held": [*DRIVER_PACKAGES, "nvidia-container-toolkit"]},
        ["hold of docker.io lifted -> held"]),
    "daemon.json edited": (
        {"docker/daemon_config": json.dumps({
            "features": {"cdi": True}, "runtimes": {"nvidia": {"path": "nvidia-container-runtime"}},
            "log-driver": "json-file", "insecure-registries": ["b:1", "a:5000"], "debug": True})},
        ["Docker's log-driver json-file -> local, service stops for it"]),
    "no daemon.json": (
        {"docker/daemon_config": None},
        ["Docker's features.cdi none -> true, service stops for it",
         "Docker's insecure-registries none -> [\"a:5000\"]",
         "Docker's log-driver none -> local, service stops for it",
         "Docker's runtimes.nvidia.path none -> nvidia-container-runtime"]),
    "a setting that was ours": (
        {"kept/daemon_keys": ["log-driver", "debug"], "docker/daemon_config": json.dumps({
            "features": {"cdi": True}, "runtimes": {"nvidia": {"path": "nvidia-container-runtime"}},
            "log-driver": "local", "insecure-registries": ["a:5000"], "debug": True})},
        ["Docker's debug true -> none, service stops for it"]),
    "another proxy": (
        {"kept/docker_proxy": "http://old:1"},
        ["Docker's proxy http://old:1 -> http://***@proxy:3128, service stops for it"]),
    "a card unknown to containers": (
        {"docker/cdi_devices": ["nvidia.com/gpu=0", "nvidia.com/gpu=all"]},
        ["cards known to containers 0 -> 0, 1"]),
    "containers know an older driver": (
        {"kept/cdi_driver": "570.195.03"}, ["driver known to containers 570.195.03 -> 580.105.08"]),
    "clocks after a reboot": (
        {"kept/limits": {}}, ["clock lock none -> 0–2100 MHz"]),
    "another clock lock": (
        {"kept/limits/GPU-1/clocks_mhz": [0, 1800]}, ["clock lock of card 1 0–1800 MHz -> 0–2100 MHz"]),
    "clocks that a card does not know": ({"kept/limits/GPU-1": {"spared": ["clocks"]}}, []),
    "power limit of one card": (
        {"cards/0/power/limit": 600.0}, ["power limit of card 0 600 W -> 450 W"]),
    "power limit rounded by firmware": ({"cards/0/power/limit": 449.5}, []),
    "a newer kernel without modules": (
        {"driver/next_kernel": "6.13", "driver/dkms": "nvidia/580.105.08, 6.12.48, x86_64: installed"},
        ["modules for the next kernel, 6.13 none -> built"]),
    "a newer kernel with modules": (
        {"driver/next_kernel": "6.13", "driver/dkms": "nvidia/580.105.08, 6.13, x86_64: installed"}, []),
    "persistence off": (
        {"cards/0/persistence": False, "cards/1/persistence": False}, ["persistence off -> on"]),
    "limits not kept for the boot": (
        {"tuning": {}}, ["limits at boot none -> persistence on, 0–2100 MHz and 450 W"]),
    "weights gone": (
        {"models": [{"request": REPO, "origin": "hub", "repo": REPO, "revision": COMMIT,
                     "files": [{"path": "model.safetensors", "size": 6_100_000_000}]}]},
        [f"q: weights none -> 6.1 GB of {REPO}, fetched"]),
    "image gone": (
        {"images/0/present": False, "images/0/size": 9_700_000_000},
        ["q: image on the host none -> 9.7 GB of vllm/vllm-openai:v0.29.0, fetched"]),
    "the tag that serves means another image": (
        {"images/0/present": False, "images/0/size": 9_700_000_000, "images/0/digest": f"sha256:{'b' * 64}",
         "releases/0/record/image_digest": f"sha256:{'a' * 64}"},
        ["q: image on the host none -> 9.7 GB of vllm/vllm-openai:v0.29.0, fetched",
         f"q: image {'a' * 12} -> {'b' * 12}, {RELEASE}"]),
    "no release": ({"releases": []}, ["q: release none -> vllm/vllm-openai:v0.29.0, first release"]),
    "other weights": (
        {"releases/0/record/model_directory":
         f"/var/lib/boxwright/models/{REPO.replace('/', '--')}/{'b' * 40}"},
        [f"q: weights {REPO}@{'b' * 12} -> {REPO}@{'a' * 12}, {RELEASE}"]),
    "other environment": (
        {"releases/0/record/env/HF_HUB_OFFLINE": "0"},
        [f"q: environment HF_HUB_OFFLINE -> another HF_HUB_OFFLINE, {RELEASE}"]),
    "other port": (
        {"releases/0/record/port": 8001}, [f"q: address 127.0.0.1:8001 -> 127.0.0.1:8000, {RELEASE}"]),
    "other cards": (
        {"releases/0/record/plan/gpus": [0]}, [f"q: cards 0 -> 0 and 1, {RELEASE}"]),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTS)
def test_one_deviation_of_a_host_is_exactly_one_change(name, facts):
    deviations, expected = HOSTS[name]
    for path, value in deviations.items():
        put(facts, path, value)
    assert sorted(texts(planned(SPEC, facts))) == sorted(expected)


#: What is declared otherwise than it was, and the changes that it takes.
DECLARATIONS = {
    "newer branch": (
        {"nvidia_driver_branch": "590"},
        ["version that apt prefers for the driver 580.* -> 590.*",
         "driver 580.105.08 -> branch 590, reboot",
         "driver known to containers 580.105.08 -> branch 590"]),
    "exact version": (
        {"nvidia_driver_version": "580.82.07"},
        ["version that apt prefers for the driver 580.* -> 580.82.07",
         "driver 580.105.08 -> version 580.82.07, reboot",
         "driver known to containers 580.105.08 -> version 580.82.07"]),
    "exact version with epoch and release": (
        {"nvidia_driver_version": "3:580.82.07-1"},
        ["version that apt prefers for the driver 580.* -> 580.82.07-1",
         "driver 580.105.08 -> version 580.82.07, reboot",
         "driver known to containers 580.105.08 -> version 580.82.07"]),
    "driver not ours to manage": ({"nvidia_driver_manage": False}, []),
    "the distribution's driver, and the vendor's toolkit": ({"nvidia_driver_source": "distribution"}, []),
    "nothing of the vendor": (
        {"nvidia_driver_source": "distribution", "nvidia_driver_cuda_toolkit": ""},
        ["package source of the vendor "
         "https://developer.download.nvidia.com/compute/cuda/repos/debian13/x86_64/ -> none",
         "CUDA toolkit 12.8 -> none"]),
    "no CUDA toolkit": ({"nvidia_driver_cuda_toolkit": ""}, ["CUDA toolkit 12.8 -> none"]),
    "other CUDA toolkit": ({"nvidia_driver_cuda_toolkit": "13.0"}, ["CUDA toolkit 12.8 -> 13.0"]),
    "clocks free": ({"gpu_tuning_max_clock_mhz": None}, ["clock lock 0–2100 MHz -> none"]),
    "another power limit": ({"gpu_tuning_power_limit_w": 500}, ["power limit 450 W -> 500 W"]),
    "Docker's version": (
        {"container_runtime_version": "27.*"}, ["Docker Engine 26.1.5 -> 27.*, service stops for it"]),
    "Docker's version as it is": ({"container_runtime_version": "26.1.5-*"}, []),
    "the toolkit's version": (
        {"container_runtime_toolkit_version": "1.17.8"}, ["NVIDIA container toolkit 1.18.0-1 -> 1.17.8"]),
    "the toolkit's version as it is": ({"container_runtime_toolkit_version": "1.18.0"}, []),
    "an authority": (
        {"box_ca": AUTHORITY}, [f"trusted authorities none -> sha256:{DIGEST}, service stops for it"]),
    "no proxy": (
        {"box_proxy": ""}, ["Docker's proxy http://***@proxy:3128 -> none, service stops for it"]),
}  # fmt: skip


@pytest.mark.parametrize("name", DECLARATIONS)
def test_one_other_declaration_is_exactly_its_change(name, facts):
    over, expected = DECLARATIONS[name]
    assert texts(planned({**SPEC, **over}, facts)) == expected


#: Of the deployment.
DEPLOYMENTS = {
    "image": (
        {"image": "vllm/vllm-openai:v0.28.0"},
        ["q: image on the host none -> vllm/vllm-openai:v0.28.0, fetched",
         f"q: image v0.29.0 -> v0.28.0, {RELEASE}"]),
    "context": ({"context": 4096}, [f"q: options --max-model-len 8192 -> --max-model-len 4096, {RELEASE}"]),
    "an option": (
        {"extra_args": {"enforce-eager": True}}, [f"q: options none -> --enforce-eager, {RELEASE}"]),
    "a variable": (
        {"env": {"VLLM_LOGGING_LEVEL": "DEBUG"}}, [f"q: environment none -> VLLM_LOGGING_LEVEL, {RELEASE}"]),
    "port and context": (
        {"port": 9000, "context": 4096},
        [f"q: options --max-model-len 8192 -> --max-model-len 4096, {RELEASE}",
         "q: address 127.0.0.1:8000 -> 127.0.0.1:9000, in the same release"]),
    "name": (
        {"name": "other"},
        ["other: release none -> vllm/vllm-openai:v0.29.0, first release",
         "q: deployment vllm/vllm-openai:v0.29.0 -> none, stopped and taken away"]),
}  # fmt: skip


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_one_other_deployment_is_exactly_its_change(name, facts):
    over, expected = DEPLOYMENTS[name]
    spec = copy.deepcopy(SPEC)
    spec["box_deployments"][0].update(over)
    assert texts(planned(spec, facts)) == expected


def test_an_authority_that_was_lost_takes_a_docker_that_runs_along_in_the_same_run(facts):
    """Otherwise the next run, of the same declaration, would be the one that restarts it."""
    spec = {**SPEC, "box_ca": AUTHORITY}
    facts["kept"]["receipts"] = {role: {} for role in ROLES}
    assert "container_runtime" in planned(spec, facts).to_json()["visits"]
    facts["docker"]["running"] = False
    [change] = [one for one in planned(spec, facts).changes if one.subject == "trusted authorities"]
    assert (change.role, change.interrupts) == ("preflight", False)


def test_a_virgin_host_has_each_thing_once():
    plain = planner.offline_facts(box_from_variables("box1", SPEC), CATALOG).to_json()
    plain.update(recorded=True, driver={"state": "nouveau", "nouveau": True})
    assert texts(planned(SPEC, plain)) == [
        "driver none -> branch 580, reboot",
        "CUDA toolkit none -> 12.8",
        "Docker Engine none -> the newest docker.io",
        "NVIDIA container toolkit none -> the newest",
        "clock lock none -> 0–2100 MHz",
        "power limit 575 W -> 450 W",
        "persistence off -> on",
        f"q: weights none -> 6.1 GB of {REPO}, fetched",
        "q: image on the host none -> vllm/vllm-openai:v0.29.0, fetched",
        "q: release none -> vllm/vllm-openai:v0.29.0, first release",
    ]


def test_what_two_deployments_share_is_fetched_once(facts):
    facts.update(images=[], models=[])
    spec = copy.deepcopy(SPEC)
    spec["box_deployments"].append({**spec["box_deployments"][0], "name": "r", "port": 8001})
    fetched = [text for text in texts(planned(spec, facts)) if text.endswith("fetched")]
    assert [text.partition(" none ")[0] for text in fetched] == ["q: weights", "q: image on the host"]


def test_keys_are_stable(facts):
    facts["releases"][0]["record"]["port"] = 8001
    assert planned(SPEC, facts).to_json()["changes"] == [
        {
            "role": "engine",
            "deployment": "q",
            "subject": "address",
            "from": "127.0.0.1:8001",
            "to": "127.0.0.1:8000",
            "needs_reboot": False,
            "interrupts_service": True,
            "seconds": 90,
            "text": f"q: address 127.0.0.1:8001 -> 127.0.0.1:8000, {RELEASE}",
        }
    ]


def test_no_secret_is_shown(facts):
    put(facts, "releases/0/record/env", {"HF_TOKEN": "hf_secret"})
    put(facts, "kept/docker_proxy", None)
    assert "secret" not in json.dumps(planned(SPEC, facts).to_json()["changes"])


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(strategies.DECLARATIONS)
def test_facts_that_match_a_declaration_give_no_changes(spec):
    box = box_from_variables("box1", spec)
    assert texts(planner.plan(box, HostFacts.from_json(as_declared(box)), CATALOG)) == []


def visited(facts, full=False, **receipts):
    """What the plan of the host as declared visits, with receipts of these roles beside whole ones."""
    whole = {role: {"differs": [], "drift": []} for role in ROLES}
    facts["kept"]["receipts"] = {**whole, **receipts}
    made = planned(SPEC, facts)
    return dataclasses.replace(made, full=full).to_json()["visits"], texts(made)


def one(kind, subject, was="as it was left", now="edited"):
    return {"differs": [], "drift": [{"kind": kind, "subject": subject, "was": was, "now": now}]}


def test_a_host_as_every_role_left_it_is_visited_by_none(facts):
    assert visited(facts) == ({}, [])


def test_another_driver_takes_the_description_for_containers_along_in_the_same_run(facts):
    """Otherwise containers would be given the libraries of the driver that went."""
    facts["kept"]["receipts"] = {role: {"differs": [], "drift": []} for role in ROLES}
    seen = planned({**SPEC, "nvidia_driver_branch": "590"}, facts).to_json()["visits"]
    assert {"nvidia_driver", "container_runtime"} <= set(seen)


def test_a_full_visit_is_one_of_every_role(facts):
    assert list(visited(facts, full=True)[0]) == list(ROLES)


def test_a_role_whose_run_did_not_end_is_visited(facts):
    facts["kept"]["receipts"] = {role: {"differs": [], "drift": []} for role in ROLES if role != "engine"}
    assert planned(SPEC, facts).to_json()["visits"] == {
        "engine": ["no run of it is known to have ended well here"]
    }


def test_a_role_of_another_version_or_declared_otherwise_is_visited_and_nothing_is_promised(facts):
    receipt = {"differs": ["code", "gpu_tuning_required"], "drift": []}
    assert visited(facts, gpu_tuning=receipt) == (
        {"gpu_tuning": ["Boxwright's role is another version", "gpu_tuning_required is declared otherwise"]},
        [],
    )


@pytest.mark.parametrize(
    ("drift", "text"),
    [
        (
            one("file", "/etc/boxwright/gpu-tuning.json"),
            "/etc/boxwright/gpu-tuning.json edited -> as it was left",
        ),
        (one("unit", "a.service", "active, enabled", "failed"), "unit a.service failed -> active, enabled"),
        (one("package", "runc", "1.1 held", "1.1"), "package runc 1.1 -> 1.1 held"),
    ],
)
def test_what_a_role_left_otherwise_is_a_change(facts, drift, text):
    seen, listed = visited(facts, container_runtime=drift)
    assert listed == [text]
    assert list(seen) == ["container_runtime"]


@pytest.mark.parametrize("kind", ["beside", "list"])
def test_what_others_changed_is_looked_at_and_no_change(facts, kind):
    assert visited(facts, nvidia_driver=one(kind, "/etc/apt/sources.list")) == (
        {"nvidia_driver": ["/etc/apt/sources.list: as it was left -> edited"]},
        [],
    )


def test_packages_are_told_once(facts):
    """A change that says what becomes of a driver stands for the drift that was seen of its packages."""
    facts["driver"]["held"] = [name for name in facts["driver"]["held"] if name != "nvidia-driver-cuda"]
    drift = one("package", "nvidia-driver-cuda", "580.105.08-1 held", "580.105.08-1")
    seen, listed = visited(facts, nvidia_driver=drift)
    assert listed == ["hold of nvidia-driver-cuda lifted -> held"]
    assert list(seen) == ["nvidia_driver"]


def test_another_key_is_a_change_of_its_own(facts):
    receipt = {"differs": ["box_deployments[q].api_key"], "drift": []}
    _, listed = visited(facts, engine=receipt)
    assert len(listed) == 1
    assert re.fullmatch(
        r"q: API key another -> made on the box, about \d+ (s|min) without service", listed[0]
    )


def test_many_reasons_are_counted(facts):
    receipt = {"differs": [f"engine_{letter}" for letter in "abcde"], "drift": []}
    assert visited(facts, engine=receipt)[0]["engine"][3:] == ["and 2 more"]
