"""Bringing into the state what exists in the engine but is not in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import docker

from boxwright.lab import network
from boxwright.lab.depot import SERVICES
from boxwright.lab.state import (
    LABEL,
    LABEL_NAME,
    LABEL_RIG,
    LABEL_ROLE,
    LABEL_SUITE,
    ROLE_DEPOT,
    ROLE_HOST,
    HostState,
    Lab,
    State,
)


def adopt(client: docker.DockerClient, lab: Lab, state: State) -> None:
    """Learn of hosts, addresses and ports from the engine: the state was lost, or an `up` was killed."""
    network.follow(client, lab, state)
    for container in client.containers.list(all=True, filters={"label": f"{LABEL}={lab.id}"}):
        learn(state, container.labels, container.attrs, lab.network)


def learn(state: State, labels: Mapping[str, str], attributes: Mapping[str, Any], network_name: str) -> None:
    """Put what the engine says of one container into the state, where the state says nothing else."""
    role, name = labels.get(LABEL_ROLE), labels.get(LABEL_NAME, "")
    if role == ROLE_HOST and name not in state.hosts:
        attached = attributes["NetworkSettings"]["Networks"].get(network_name) or {}
        if address := (attached.get("IPAMConfig") or {}).get("IPv4Address"):
            state.hosts[name] = HostState(labels[LABEL_RIG], labels[LABEL_SUITE], address)
    if role == ROLE_DEPOT:
        bindings = attributes["HostConfig"].get("PortBindings") or {}
        for service in SERVICES.values():
            if bound := bindings.get(f"{service.port}/tcp"):
                state.ports.setdefault(service.name, int(bound[0]["HostPort"]))
