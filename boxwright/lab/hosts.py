"""Simulated hosts: containers that boot systemd and sshd, with the files that give them their cards."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass
from ipaddress import IPv4Address

import docker
from docker.models.containers import Container

from boxwright.errors import EXIT_BAD_INPUT, UserError
from boxwright.lab import images, machine, network, rigs, ssh
from boxwright.lab.depot import ALIAS
from boxwright.lab.docker import run_in
from boxwright.lab.machine import Machine
from boxwright.lab.payload import Payload
from boxwright.lab.state import LABEL_RECIPE, LABEL_RIG, LABEL_SUITE, ROLE_HOST, HostState, Lab, Report, State, Stopwatch

#: Directories in which a Docker Engine inside a host keeps images: volumes, since overlays cannot be stacked.
VOLUMES = {"/var/lib/docker": "docker", "/var/lib/containerd": "containerd"}
SSH_PORT, SSH_TIMEOUT = 22, 60


@dataclass(frozen=True)
class HostRequest:
    """A simulated host that is wanted. rig: its cards, a name of data/rigs.yml; suite: its Debian release."""

    name: str
    rig: str = "rtx5090"
    suite: str = "trixie"

    def check(self) -> None:
        """Raise UserError for a name that cannot be a host's, or a rig or suite that does not exist."""
        plain = self.name.replace("-", "a")
        if not (plain.isascii() and plain.isalnum() and self.name == self.name.lower() and len(self.name) <= 40
                and not self.name.startswith("-") and not self.name.endswith("-")) or self.name in ("depot", "net"):
            raise UserError(f"{self.name!r} cannot be the name of a lab host", status=EXIT_BAD_INPUT,
                            ways_out=("use lower-case letters, digits and hyphens (depot and net are taken)",))
        rigs.load(self.rig, self.name)
        images.host_recipe(self.suite)


def check_against(state: State, request: HostRequest) -> None:
    """Raise UserError when the host exists with other cards or another release than is asked for."""
    kept = state.hosts.get(request.name)
    if kept is None or (kept.rig, kept.suite) == (request.rig, request.suite):
        return
    raise UserError(f"{request.name} exists with rig {kept.rig} on {kept.suite}, not {request.rig} on {request.suite}",
                    status=EXIT_BAD_INPUT,
                    why="a host keeps what it was made with, as a machine does",
                    ways_out=(f"python -m boxwright.lab down {request.name}   and then up again",
                              f"ask for --rig {kept.rig} --suite {kept.suite}"))


def ensure(client: docker.DockerClient, lab: Lab, state: State, request: HostRequest, report: Report) -> Container:
    """The host's container, made and started when it is not; the state knows its address. It may still boot."""
    host = state.hosts.setdefault(
        request.name, HostState(request.rig, request.suite, network.address_for(request.name, state)))
    container = machine.find(client, lab, request.name)
    image = images.host_recipe(request.suite).tag(lab)
    files = host_files(lab, state, request, report)
    wanted = Machine(name=request.name, role=ROLE_HOST, image=image, address=host.address, labels={},
                     volumes={at: f"{lab.container(request.name)}-{word}" for at, word in VOLUMES.items()})
    recipe = wanted.digest(files)
    if container is not None and container.status == "created":
        # Made by an `up` that was killed before it was started: perhaps without its files.
        container.remove(force=True)
        container = None
    if container is None:
        labels = lab.labels(role=ROLE_HOST, name=request.name, rig=request.rig, suite=request.suite, recipe=recipe)
        container = machine.create(client, lab, Machine(**{**vars(wanted), "labels": labels}), files)
    elif container.labels.get(LABEL_RECIPE) != recipe:
        report(f"lab: {request.name} was made by an older recipe; `down {request.name}` and `up` make it anew")
    if container.status != "running":
        machine.start(client, lab, container, wanted)
    return container


def adopt(client: docker.DockerClient, lab: Lab, state: State) -> None:
    """Bring into the state the hosts that run but are not in it (its file was lost, or an `up` was killed)."""
    for container in client.containers.list(
            all=True, filters={"label": [f"boxwright.lab={lab.id}", f"boxwright.lab.role={ROLE_HOST}"]}):
        name = container.labels["boxwright.lab.name"]
        attached = container.attrs["NetworkSettings"]["Networks"].get(lab.network) or {}
        address = (attached.get("IPAMConfig") or {}).get("IPv4Address")
        if name not in state.hosts and address:
            state.hosts[name] = HostState(container.labels[LABEL_RIG], container.labels[LABEL_SUITE], address)


def host_files(lab: Lab, state: State, request: HostRequest, report: Report) -> list[Payload]:
    """The files of a host before it boots: the way in, the machine's certificates and proxies, its hardware."""
    import importlib.util

    if importlib.util.find_spec("boxwright.lab.gpu.hardware") is None:  # until that part is there
        return [*ssh.files(lab, request.name, report), *images.certificates(), *images.apt_settings(),
                *proxy_files(images.proxy_environment(), state)]
    hardware = importlib.import_module("boxwright.lab.gpu.hardware")
    rig = rigs.load(request.rig, request.name)
    return [*ssh.files(lab, request.name, report), *images.certificates(), *images.apt_settings(),
            *proxy_files(images.proxy_environment(), state), *hardware.files(rig)]


def proxy_files(environment: dict[str, str], state: State) -> list[Payload]:
    """The files that give a host the machine's proxies, for logins, sudo, and services."""
    if not environment:
        return []
    direct = ",".join(dict.fromkeys([word for word in environment.get("no_proxy", "").split(",") if word]
                                    + ["localhost", "127.0.0.1", ALIAS, state.subnet]))
    values = environment | {"no_proxy": direct, "NO_PROXY": direct}
    lines = [f'{name}="{value}"' for name, value in sorted(values.items())]
    return [
        Payload.text("/etc/environment", "\n".join(lines) + "\n"),
        Payload.text("/etc/sudoers.d/lab-proxy", f'Defaults env_keep += "{" ".join(sorted(values))}"\n', mode=0o440),
        Payload.text("/etc/systemd/system.conf.d/lab-proxy.conf",
                     "[Manager]\n" + "".join(f'DefaultEnvironment={_systemd_word(line)}\n' for line in
                                             (f"{name}={value}" for name, value in sorted(values.items())))),
    ]


def prepare(container: Container, name: str, report: Report) -> None:
    """Wait until the host has booted and can be entered."""
    machine.wait(container, name, report)
    if not container.labels.get(LABEL_RIG):
        raise UserError(f"{container.name} is not a host of the lab")
    if images.certificates():
        status, output = run_in(container, ["update-ca-certificates"])
        if status:
            report(f"lab: {name} could not take over this machine's certificates: {output.splitlines()[-1]}")
    container.reload()
    address = container.attrs["NetworkSettings"]["Networks"]
    wait_for_ssh(next(iter(address.values()))["IPAddress"], name)


def wait_for_ssh(address: str, name: str) -> None:
    """Wait until an ssh server greets at the address. Raises UserError when none does in time."""
    watch, deadline, trouble = Stopwatch(), time.monotonic() + SSH_TIMEOUT, ""
    while time.monotonic() < deadline:
        try:
            with socket.create_connection((str(IPv4Address(address)), SSH_PORT), timeout=5) as connection:
                connection.settimeout(5)
                if connection.recv(4) == b"SSH-":
                    return
                trouble = "something else than ssh answers"
        except OSError as error:
            trouble = str(error)
        time.sleep(0.2)
    raise UserError(f"{name} booted, but cannot be entered by ssh at {address} (tried for {watch})", why=trouble,
                    ways_out=(f"see why: docker exec {name} journalctl -u ssh",
                              "see that this machine's firewall lets it reach its own container networks"))


def _systemd_word(text: str) -> str:
    """A value as one quoted word of a systemd configuration file."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%") + '"'
