"""Facts of a host on which everything that a box declares is true, made from the box and its plan."""

from __future__ import annotations

import json

from boxwright import catalog, planner
from boxwright.facts import HostFacts

CATALOG = catalog.load()
COMMIT = "a" * 40
#: Packages of a container runtime, name -> version.
DOCKER = {"docker.io": "26.1.5-1", "nvidia-container-toolkit": "1.18.0-1"}


def _port_access(box):
    ports = [[one.bind, str(one.port)] for one in box.deployments if not one.is_loopback]
    return {"allow_from": list(box.allow_from), "ports": ports} if box.allow_from and ports else None


def as_declared(box):
    """The facts of a host on which everything that a box declares is true."""
    plain = planner.offline_facts(box, CATALOG).to_json()
    plan = planner.plan(box, HostFacts.from_json(plain), CATALOG).to_json()
    tuning, settings = box.tuning, box.settings
    version = (box.driver.version or f"{box.driver.branch}.105.08").split("-")[0]
    for card in plain["cards"]:
        card["uuid"] = f"GPU-{card['index']}"
        card["persistence"] = tuning.persistence
        limits = tuning.of(card["index"], card["uuid"])
        if limits.power_limit_w is not None:
            card["power"]["limit"] = limits.power_limit_w
    toolkit = box.driver.cuda_toolkit
    packages = {"nvidia-driver-cuda": f"{version}-1"}
    if toolkit:
        packages[f"cuda-toolkit-{toolkit.replace('.', '-')}"] = "1"
    daemon = {"features": {"cdi": True}, "runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}
    daemon.update(settings.get("container_runtime_daemon_config") or {})
    proxy = box.proxy and box.proxy.replace("me:secret", "***")
    plain.update(
        recorded=True,
        os={
            "id": "debian",
            "version_id": "13",
            "codename": "trixie",
            "architecture": "x86_64",
            "kernel": "6",
        },
        driver={
            "state": "loaded",
            "installed_version": version,
            "loaded_version": version,
            "library_version": version,
            "flavor": box.driver.flavor,
            "packages": packages,
            "held": [*packages, *DOCKER],
            "kernel_headers": True,
        },
        docker={
            "version": "26.1.5",
            "package": "docker.io",
            "packages": DOCKER,
            "running": True,
            "cdi": True,
            "cdi_devices": [
                *(f"nvidia.com/gpu={card['index']}" for card in plain["cards"]),
                "nvidia.com/gpu=all",
            ],
            "toolkit_version": "1.18.0",
            "daemon_config": json.dumps(daemon).replace("me:secret", "***"),
        },
        tuning={
            "cards": {
                card["uuid"]: {
                    "persistence": tuning.persistence,
                    "clocks_mhz": list(limits.clocks_mhz) or None,
                    "memory_clock_mhz": limits.memory_clock_mhz,
                    "power_limit_w": limits.power_limit_w,
                }
                for card in plain["cards"]
                for limits in [tuning.of(card["index"], card["uuid"])]
            }
        },
        kept={
            "sources": {
                "cuda": ["https://developer.download.nvidia.com/compute/cuda/repos/debian13/x86_64/"],
                "container-toolkit": ["https://nvidia.github.io/libnvidia-container/stable/deb/amd64/"],
                "docker": ["https://download.docker.com/linux/debian"],
            },
            "pins": {"nvidia-driver": box.driver.version or f"{box.driver.branch}.*"},
            "groups": {
                "nvidia-driver": {
                    "declared": list(packages),
                    "installed": list(packages),
                    "holds": list(packages),
                },
                "container-runtime": {"declared": list(DOCKER), "installed": [], "holds": list(DOCKER)},
            },
            "limits": {
                card["uuid"]: {
                    "clocks_mhz": list(limits.clocks_mhz),
                    "memory_clock_mhz": limits.memory_clock_mhz,
                }
                for card in plain["cards"]
                for limits in [tuning.of(card["index"], card["uuid"])]
            },
            "docker_proxy": proxy or None,
            "port_access": _port_access(box),
            "cdi_driver": version,
            "files": [
                "/etc/modprobe.d/boxwright-nvidia.conf",
                "/etc/modules-load.d/boxwright-nvidia.conf",
                "/etc/systemd/system/boxwright-gpu-tuning.service",
            ],
        },
        images=[
            {"reference": one["image"], "present": True, "size": 1, "digest": "sha256:" + "0" * 64}
            for one in plan["deployments"]
        ],
        models=[],
        releases=[],
    )
    # The store holds a revision once, whoever serves it.
    repos = dict.fromkeys(one["weights"]["repo"] for one in plan["deployments"] if one["weights"]["repo"])
    plain["models"] = [
        {
            "request": f"{repo}@{COMMIT}",
            "origin": "store",
            "repo": repo,
            "revision": COMMIT,
            "complete": True,
            "files": [{"path": "model.safetensors", "size": 10}],
        }
        for repo in repos
    ]
    known = HostFacts.from_json(plain)
    # The command depends on what the store says of the model, so it is planned with these facts.
    made = planner.plan(box, known, CATALOG).to_json()
    plain["releases"] = [
        {
            "deployment": one["name"],
            "id": "0" * 12,
            "current": True,
            "record": {
                "image": one["image"],
                "revision": one["weights"]["revision"],
                "command": one["command"],
                "model_directory": one["model_directory"],
                "env": one["env"],
                "bind": one["bind"],
                "port": one["port"],
                "plan": {"gpus": one["gpus"]},
            },
        }
        for one in made["deployments"]
    ]
    return plain
