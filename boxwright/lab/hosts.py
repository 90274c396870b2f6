"""Simulated hosts: containers that boot systemd and sshd, with the files that give them their cards."""

from __future__ import annotations

import re
import socket
import time
from dataclasses import dataclass, replace

import docker
from docker.models.containers import Container

from boxwright.errors import EXIT_BAD_INPUT, UserError
from boxwright.lab import images, machine, network, rigs, ssh, surroundings
from boxwright.lab.depot import ALIAS
from boxwright.lab.gpu import hardware
from boxwright.lab.machine import Machine
from boxwright.lab.payload import Payload
from boxwright.lab.state import (
    LABEL_RECIPE,
    ROLE_HOST,
    HostState,
    Lab,
    Report,
    State,
)

#: Directories in which an engine inside a host keeps images: volumes, since overlays cannot be stacked.
VOLUMES = {"/var/lib/docker": "docker", "/var/lib/containerd": "containerd"}
SSH_PORT, SSH_TIMEOUT = 22, 60
#: A label of a DNS name, short enough for the names made of it.
HOST_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
TAKEN_NAMES = ("depot", "localhost", "net")


@dataclass(frozen=True)
class HostRequest:
    """A simulated host that is wanted. rig: its cards, a name of data/rigs.yml; suite: its Debian release."""

    name: str
    rig: str = "rtx5090"
    suite: str = "trixie"

    def check(self) -> None:
        """Raise UserError for a name that cannot be a host's, or a rig or suite that does not exist."""
        if not HOST_NAME.fullmatch(self.name) or self.name in TAKEN_NAMES:
            raise UserError(
                f"{self.name!r} cannot be the name of a lab host",
                status=EXIT_BAD_INPUT,
                ways_out=(
                    f"use at most 40 lower-case letters, digits and hyphens; not {', '.join(TAKEN_NAMES)}",
                ),
            )
        rigs.load(self.rig, self.name)
        images.host_recipe(self.suite)


def check_against(state: State, request: HostRequest) -> None:
    """Raise UserError when the host exists with other cards or another release than is asked for."""
    kept = state.hosts.get(request.name)
    if kept is None or (kept.rig, kept.suite) == (request.rig, request.suite):
        return
    raise UserError(
        f"{request.name} exists with rig {kept.rig} on {kept.suite}, not {request.rig} on {request.suite}",
        status=EXIT_BAD_INPUT,
        why="a host keeps what it was made with, as a machine does",
        ways_out=(
            f"python -m boxwright.lab down {request.name}   and then up again",
            f"ask for --rig {kept.rig} --suite {kept.suite}",
        ),
    )


def ensure(
    client: docker.DockerClient, lab: Lab, state: State, request: HostRequest, report: Report
) -> Container:
    """The host's container, made and started when it is not; it may still boot. The state learns of it."""
    address = network.address_for(request.name, state)
    host = state.hosts.setdefault(request.name, HostState(request.rig, request.suite, address))
    files = host_files(lab, state, request, report)
    wanted = Machine(
        name=request.name,
        role=ROLE_HOST,
        image=images.host_recipe(request.suite).tag(lab),
        address=host.address,
        labels={},
        volumes={at: f"{lab.container(request.name)}-{word}" for at, word in VOLUMES.items()},
    )
    recipe = wanted.digest(files)
    container = machine.find(client, lab, request.name)
    if container is not None and container.status == "created":
        # Of an `up` that was killed before it started the host: perhaps without its files.
        container.remove(force=True)
        container = None
    if container is None:
        labels = lab.labels(
            role=ROLE_HOST, name=request.name, rig=request.rig, suite=request.suite, recipe=recipe
        )
        container = machine.create(client, lab, replace(wanted, labels=labels), files)
    elif container.labels.get(LABEL_RECIPE) != recipe:
        report(
            f"lab: {request.name} was made by an older recipe; `down {request.name}` and `up` make it anew"
        )
    if container.status != "running":
        machine.start(client, lab, container, wanted)
    return container


def host_files(lab: Lab, state: State, request: HostRequest, report: Report) -> list[Payload]:
    """The files of a host before it boots: the way in, what the machine has around it, its hardware."""
    proxies = surroundings.proxy_environment()
    if lost := surroundings.loopback_proxies(proxies):
        report(
            f"lab: {request.name} will not reach the proxy of {', '.join(lost)}: it listens on loopback only"
        )
    direct = f"localhost,127.0.0.1,{ALIAS},{state.subnet}"
    return [
        *ssh.files(lab, request.name, report),
        *surroundings.certificates(),
        *surroundings.apt_proxy(),
        *surroundings.proxy_files(proxies, direct),
        *hardware.files(rigs.load(request.rig, request.name)),
    ]


def prepare(container: Container, name: str, report: Report) -> None:
    """Wait until the host has booted and can be entered."""
    machine.wait(container, name, report)
    attached = container.attrs["NetworkSettings"]["Networks"].values()
    wait_for_ssh(next(iter(attached))["IPAddress"], container.name or name)


def wait_for_ssh(address: str, container: str) -> None:
    """Wait until an ssh server greets at the address. Raises UserError when none does in time."""
    deadline, trouble = time.monotonic() + SSH_TIMEOUT, ""
    while time.monotonic() < deadline:
        try:
            with socket.create_connection((address, SSH_PORT), timeout=5) as connection:
                connection.settimeout(5)
                if connection.recv(4) == b"SSH-":
                    return
                trouble = "something else than ssh answers"
        except OSError as error:
            trouble = str(error)
        time.sleep(0.2)
    raise UserError(
        f"{container} booted, but cannot be entered by ssh at {address} in {SSH_TIMEOUT} s",
        why=trouble,
        ways_out=(
            f"see why: docker exec {container} journalctl -u ssh",
            "see that this machine's firewall lets it reach its own container networks",
        ),
    )
