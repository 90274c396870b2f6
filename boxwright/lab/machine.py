"""A container that boots systemd: made, started, waited for. Simulated hosts and the depot are such."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import docker
from docker.errors import APIError, NotFound
from docker.models.containers import Container
from docker.types import Mount

from boxwright.errors import UserError
from boxwright.lab.capabilities import bounding_capabilities
from boxwright.lab.docker import run_in
from boxwright.lab.payload import Payload, archive
from boxwright.lab.state import LABEL, Lab, Report

DATA = Path(__file__).with_name("data") / "machine"
INIT = "/usr/local/lib/boxwright-lab/init"
#: Seconds for a machine to boot. A quiet one takes 1 to 3.
BOOT_TIMEOUT = 120
#: What `systemctl is-system-running` says when boot is over.
BOOTED = frozenset({"running", "degraded"})


@dataclass(frozen=True)
class Machine:
    """What a container is to be.

    volumes: the engine's volumes, by the directory where they are mounted; binds: directories of this machine
    and whether they can be written, likewise; ports: those on 127.0.0.1, by the container's port.
    """

    name: str
    role: str
    image: str
    address: str
    labels: Mapping[str, str]
    aliases: Sequence[str] = ()
    volumes: Mapping[str, str] = field(default_factory=dict)
    binds: Mapping[str, tuple[Path, bool]] = field(default_factory=dict)
    ports: Mapping[int, int] = field(default_factory=dict)

    def digest(self, files: Sequence[Payload]) -> str:
        """Twelve hex digits that change with what the machine is made of (not with its address)."""
        made_of = [
            self.image,
            sorted(self.volumes.items()),
            sorted(self.ports.items()),
            sorted(self.aliases),
            sorted((at, str(path), write) for at, (path, write) in self.binds.items()),
            sorted(
                (file.path, hashlib.sha256(file.content).hexdigest(), file.mode)
                for file in (*boot_files(), *files)
            ),
        ]
        return hashlib.sha256(json.dumps(made_of).encode()).hexdigest()[:12]


#: Mount units of files that the engine mounts into every container.
ENGINES_FILES = ("etc-hosts.mount", "etc-hostname.mount", "etc-resolv.conf.mount")


def boot_files() -> list[Payload]:
    """The files by which a container boots as a machine of its own."""
    return [
        Payload(INIT, (DATA / "init").read_bytes(), mode=0o755),
        Payload("/etc/systemd/system/lab-boot-id.service", (DATA / "lab-boot-id.service").read_bytes()),
        *(
            Payload(f"/etc/systemd/system/{unit}.d/lab.conf", (DATA / "keep-mounted.conf").read_bytes())
            for unit in ENGINES_FILES
        ),
    ]


def find(client: docker.DockerClient, lab: Lab, name: str) -> Container | None:
    """The container of this lab called `name`, if any. Raises UserError when it is another's."""
    try:
        container = client.containers.get(lab.container(name))
    except NotFound:
        return None
    if container.labels.get(LABEL) != lab.id:
        raise UserError(
            f"a container called {lab.container(name)} exists that this lab did not make",
            ways_out=("rename or remove that container",),
        )
    return container


def create(client: docker.DockerClient, lab: Lab, machine: Machine, files: Sequence[Payload]) -> Container:
    """Make the container with fresh volumes and put its files in; it is not started."""
    version = str(client.info().get("CgroupVersion", "1"))
    for volume in machine.volumes.values():
        remove_volume(client, lab, volume)
        client.volumes.create(volume, labels=lab.labels(role=machine.role, name=machine.name))
    mounts = [Mount(at, volume, type="volume") for at, volume in machine.volumes.items()]
    mounts += [
        Mount(at, str(path), type="bind", read_only=not write) for at, (path, write) in machine.binds.items()
    ]
    if version == "1":
        mounts.append(Mount("/sys/fs/cgroup", "/sys/fs/cgroup", type="bind"))
    settings = client.api.create_host_config(
        mounts=mounts,
        cap_add=bounding_capabilities(),
        cap_drop=["ALL"],
        security_opt=["seccomp=unconfined", "apparmor=unconfined"],
        # With version 1 systemd needs the machine's hierarchies; with 2 a namespace makes its root its own.
        cgroupns="host" if version == "1" else "private",
        tmpfs={"/run": "exec,mode=755", "/tmp": "exec,mode=1777"},
        restart_policy={"Name": "unless-stopped"},
        port_bindings={inner: ("127.0.0.1", outer) for inner, outer in machine.ports.items()},
    )
    # What `--security-opt systempaths=unconfined` means: an engine inside needs the settings of its network.
    settings |= {"MaskedPaths": [], "ReadonlyPaths": []}
    endpoint = client.api.create_endpoint_config(ipv4_address=machine.address, aliases=list(machine.aliases))
    name = lab.container(machine.name)
    try:
        made = client.api.create_container(
            machine.image,
            [INIT],
            name=name,
            hostname=machine.name,
            labels=dict(machine.labels),
            environment={"container": "docker"},
            stop_signal="SIGRTMIN+3",
            ports=list(machine.ports),
            host_config=settings,
            networking_config={"EndpointsConfig": {lab.network: endpoint}},
        )
        container = client.containers.get(made["Id"])
        container.put_archive("/", archive([*boot_files(), *files]))
    except APIError as error:
        if leftover := find(client, lab, machine.name):
            leftover.remove(force=True)
        raise UserError(f"the engine could not make {name}", why=error.explanation) from error
    return container


def start(client: docker.DockerClient, lab: Lab, container: Container, machine: Machine) -> None:
    """Start the container, at its address even where the lab's network was made anew since."""
    network = client.networks.get(lab.network)
    attached = container.attrs["NetworkSettings"]["Networks"].get(lab.network) or {}
    at = (attached.get("IPAMConfig") or {}).get("IPv4Address")
    try:
        if attached.get("NetworkID") not in ("", network.id) or at != machine.address:
            if attached:
                client.api.disconnect_container_from_network(str(container.id), lab.network, force=True)
            network.connect(container, ipv4_address=machine.address, aliases=list(machine.aliases))
        container.start()
    except APIError as error:
        raise UserError(
            f"the engine could not start {container.name}",
            why=error.explanation,
            ways_out=("try again: ports and addresses taken meanwhile are chosen anew",),
        ) from error


def wait(container: Container, label: str, report: Report) -> None:
    """Wait until systemd says that boot is over; name the units that failed.

    Raises UserError when the machine stops, or does not come up in time.
    """
    deadline, said = time.monotonic() + BOOT_TIMEOUT, ""
    while said not in BOOTED:
        container.reload()
        if container.status in ("exited", "dead"):
            tail = container.logs(tail=10).decode(errors="replace").strip()
            raise UserError(
                f"{label} stopped while booting",
                why=tail.replace("\n", "\n  ") or None,
                ways_out=(f"docker logs {container.name}",),
            )
        if time.monotonic() > deadline:
            raise UserError(
                f"{label} did not boot in {BOOT_TIMEOUT} s",
                why=f"systemd says: {said or 'nothing'}",
                ways_out=(f"docker exec {container.name} systemctl list-jobs",),
            )
        try:
            _, said = run_in(container, ["systemctl", "is-system-running"])
        except APIError:  # between two starts
            said = ""
        if said not in BOOTED:
            time.sleep(0.2)
    if said == "degraded":
        _, failed = run_in(container, ["systemctl", "--failed", "--no-legend", "--plain", "--no-pager"])
        units = ", ".join(line.split()[0] for line in failed.splitlines() if line.strip())
        report(f"lab: {label} is up, but these units failed: {units}")


def remove_volume(client: docker.DockerClient, lab: Lab, name: str) -> None:
    """Remove a volume of this lab, if it exists. Raises UserError when it is another's."""
    try:
        volume = client.volumes.get(name)
    except NotFound:
        return
    if (volume.attrs.get("Labels") or {}).get(LABEL) != lab.id:
        raise UserError(
            f"a volume called {name} exists that this lab did not make", ways_out=("remove that volume",)
        )
    volume.remove(force=True)
