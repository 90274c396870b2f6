"""Releases as a compose file."""

from __future__ import annotations

from typing import Any

from boxwright.ansible.module_utils.engine_container import NETWORK, PORT, Container
from boxwright.export.release import (
    HEALTH,
    HEALTH_INTERVAL_S,
    HEALTH_RETRIES,
    HEALTH_TIMEOUT_S,
    START_S,
    Release,
    documents,
    head,
)

FILE = "compose.yaml"


def files(releases: list[Release]) -> dict[str, str]:
    """One compose file of all releases, and the guards that it mounts."""
    whole: dict[str, Any] = {
        "name": "boxwright",
        "services": {one.name: _service(one) for one in releases},
        # The file on the box, which root alone reads; `invoke key` shows what is in it.
        "secrets": {_secret(one): {"file": _key(one.container)} for one in releases},
    }
    if any(not one.container.outgoing for one in releases):
        # Ports can be published from it, but nothing on it can call out, nor engines each other.
        options = {
            "com.docker.network.bridge.enable_ip_masquerade": "false",
            "com.docker.network.bridge.enable_icc": "false",
        }
        whole["networks"] = {NETWORK: {"driver": "bridge", "driver_opts": options}}
    steps = [f"Then, on the box, as root: docker compose --file {FILE} up --detach"]
    text = "#\n".join(head(one, steps if one is releases[-1] else ()) for one in releases)
    guards = {one.guard_file: one.guard for one in releases if one.guard is not None}
    return {FILE: text + documents(whole), **guards}


def _service(release: Release) -> dict[str, Any]:
    box = release.container
    service: dict[str, Any] = {
        "container_name": box.name,
        "image": box.image,
        "pull_policy": "missing",
        "init": True,
        "restart": "always",
        "read_only": True,
        "tmpfs": ["/tmp:exec"],
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        **({"user": box.user} if box.user else {}),
        "shm_size": box.shm_size,
        "stop_grace_period": f"{box.stop_timeout_s}s",
        "labels": {"boxwright.deployment": box.deployment, "boxwright.release": box.release},
        "networks": ["default"] if box.outgoing else [NETWORK],
        "ports": [{"host_ip": box.bind, "published": str(box.port), "target": PORT, "protocol": "tcp"}],
        "volumes": [
            {
                "type": "bind",
                "source": _plain(f"./{release.guard_file}" if one.what == "guard" else one.source),
                "target": one.target,
                "read_only": one.read_only,
            }
            for one in box.mounts
            if one.what != "key"
        ],
        "secrets": [
            {"source": _secret(release), "target": one.target} for one in box.mounts if one.what == "key"
        ],
        "environment": {name: _plain(value) for name, value in sorted(box.env.items())},
        "entrypoint": [_plain(word) for word in release.entrypoint],
        "command": [_plain(word) for word in box.command],
        "healthcheck": {
            "test": ["CMD", *HEALTH],
            "interval": f"{HEALTH_INTERVAL_S}s",
            "timeout": f"{HEALTH_TIMEOUT_S}s",
            "retries": HEALTH_RETRIES,
            "start_period": f"{START_S}s",
        },
    }
    if box.devices:
        service["deploy"] = {"resources": {"reservations": {"devices": [_devices(box)]}}}
    return service


def _devices(box: Container) -> dict[str, Any]:
    if box.access == "cdi":
        names = [f"nvidia.com/gpu={one}" for one in box.devices]
        return {"driver": "cdi", "device_ids": names, "capabilities": ["gpu"]}
    return {"driver": "nvidia", "device_ids": box.devices, "capabilities": ["gpu"]}


def _key(box: Container) -> str:
    return next(_plain(one.source) for one in box.mounts if one.what == "key")


def _secret(release: Release) -> str:
    return f"{release.name}-key"


def _plain(text: str) -> str:
    """A text in which compose finds no variable of its own."""
    return text.replace("$", "$$")
