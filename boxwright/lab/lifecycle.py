"""Up, down and status: the whole lab as one thing."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import docker
import requests
from docker.errors import APIError
from docker.models.containers import Container

from boxwright.errors import UserError
from boxwright.lab import depot, hosts, images, machine, network, ssh
from boxwright.lab.docker import engine
from boxwright.lab.hosts import HostRequest
from boxwright.lab.state import LABEL, LABEL_NAME, LABEL_ROLE, ROLE_HOST, Lab, Report, State, Stopwatch, locked
from boxwright.lab.supply import Supply

#: The lock file of the lab's inventory, which records what was resolved for hosts that are gone with the lab.
LOCK_FILE = Path("inventory/lab/.boxwright.lock.json")


@dataclass(frozen=True)
class HostStatus:
    """One simulated host. state: the engine's word for its container (running, exited, missing, unknown)."""

    name: str
    rig: str
    suite: str
    address: str
    state: str


@dataclass(frozen=True)
class LabStatus:
    """The lab as it is. depot: as HostStatus.state; ports: of the depot on 127.0.0.1; cache_bytes: kept on disk."""

    id: str
    subnet: str
    hosts: tuple[HostStatus, ...]
    depot: str
    depot_address: str
    ports: dict[str, int]
    cache: str
    cache_bytes: int

    def to_json(self) -> dict[str, Any]:
        """The status as plain values."""
        return asdict(self)

    def table(self) -> str:
        """The status as text, a line a host."""
        rows = [("host", "rig", "suite", "address", "state")]
        rows += [(host.name, host.rig, host.suite, host.address, host.state) for host in self.hosts]
        if self.depot != "missing":
            rows.append(("depot", "-", "-", self.depot_address, self.depot))
        widths = [max(len(row[column]) for row in rows) for column in range(5)]
        lines = ["  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        if len(rows) == 1:
            lines = ["no host is up"]
        return "\n".join([*lines, f"cache: {self.cache_bytes / 2**20:.0f} MiB in {self.cache}"])


def up(requested: Sequence[HostRequest], report: Report = print) -> State:
    """Have the requested hosts run, with network, images and depot; what is there already stays as it is.

    The state that comes back knows each host's address. Raises UserError, with what is missing and how to get it.
    """
    for request in requested:
        request.check()
    watch = Stopwatch()
    lab = Lab.here()
    _check_null_device()
    client = engine(report)
    lab.directory.mkdir(exist_ok=True)
    with ThreadPoolExecutor(max_workers=len(requested) + 4) as pool:
        supply = Supply.start(pool, lab, report)
        with locked(lab.directory / "lock", report, "with this lab"):
            state, containers = _start_hosts(client, lab, requested, report)
        # The depot is waited for under a lock of its own: others can have hosts while its trees are made.
        ready = [pool.submit(hosts.prepare, container, name, report) for name, container in containers.items()]
        with locked(lab.directory / "depot.lock", report, "with this lab's depot"):
            depot.prepare(depot.ensure(client, lab, state, supply.trees(), report), state, report)
            supply.push(lab, f"http://127.0.0.1:{state.ports['registry']}", report)
        for host in ready:
            host.result()
    for request in requested:
        report(f"lab: {request.name} ({request.rig}, {request.suite}) is up at {state.hosts[request.name].address}")
    report(f"lab: ready in {watch}")
    return state


def control_depot(action: str, service: str) -> None:
    """Start, stop or restart one service of the depot (www, hub, registry), to see what its loss does."""
    depot.control(engine(print, start=False), Lab.here(), action, service)


def _start_hosts(client: docker.DockerClient, lab: Lab, requested: Sequence[HostRequest],
                 report: Report) -> tuple[State, dict[str, Container]]:
    """Start the hosts with all that they need to boot; the state is written before and after."""
    state = State.load(lab)
    hosts.adopt(client, lab, state)
    for request in requested:
        hosts.check_against(state, request)
    network.ensure(client, lab, state, report)
    running = machine.find(client, lab, depot.NAME)
    if running is None or running.status != "running":
        depot.choose_ports(state)
    ssh.ensure_key(lab, report)
    for suite in dict.fromkeys(request.suite for request in requested):
        images.ensure_host_image(client, lab, suite, report)
    containers = {}
    for request in requested:
        containers[request.name] = hosts.ensure(client, lab, state, request, report)
        state.save(lab)
    ssh.configure(lab, {name: host.address for name, host in state.hosts.items()})
    return state, containers


def down(names: Sequence[str] | None = None, report: Report = print, *, cache: bool = False) -> None:
    """Remove the named hosts, or without names the whole lab; with `cache` also what is kept for the next lab.

    Nothing is touched that does not carry the lab's label. Raises UserError for a name that is not a host's.
    """
    lab = Lab.here()
    if not lab.directory.exists() and not names:
        _drop_cache(lab, report, cache)
        return
    lab.directory.mkdir(exist_ok=True)
    with locked(lab.directory / "lock", report, "with this lab"):
        client = engine(report)
        state = State.load(lab)
        hosts.adopt(client, lab, state)
        if names:
            for name in names:
                _remove_host(client, lab, name, report)
                state.hosts.pop(name, None)
            ssh.configure(lab, {name: host.address for name, host in state.hosts.items()})
            state.save(lab)
            return
        _remove_all(client, lab)
        (lab.root / LOCK_FILE).unlink(missing_ok=True)
        shutil.rmtree(lab.directory)
        report("lab: containers, volumes, network and images removed")
    _drop_cache(lab, report, cache)


def status() -> LabStatus:
    """What runs of this lab; starts and installs nothing."""
    lab = Lab.here()
    state = State.load(lab)
    running: dict[str, str] = {}
    answered = True
    try:
        client = engine(lambda _: None, start=False)
        for container in client.containers.list(all=True, filters={"label": f"{LABEL}={lab.id}"}):
            running[container.labels.get(LABEL_NAME, "")] = container.status
        hosts.adopt(client, lab, state)
    except (UserError, APIError, requests.RequestException):
        answered = False
    missing = "missing" if answered else "unknown"
    return LabStatus(
        id=lab.id, subnet=state.subnet, depot=running.get("depot", missing), depot_address=state.depot_address,
        ports=dict(state.ports), cache=str(lab.cache), cache_bytes=_size(lab.cache),
        hosts=tuple(HostStatus(name, host.rig, host.suite, host.address, running.get(name, missing))
                    for name, host in sorted(state.hosts.items())))


def _remove_host(client: docker.DockerClient, lab: Lab, name: str, report: Report) -> None:
    container = machine.find(client, lab, name)
    if container is not None and container.labels.get(LABEL_ROLE) != ROLE_HOST:
        raise UserError(f"{name} is not a host", ways_out=("`down` without names removes the whole lab",))
    if container is not None:
        container.remove(force=True, v=True)
    for volume in client.volumes.list(filters={"label": [f"{LABEL}={lab.id}", f"{LABEL_NAME}={name}"]}):
        volume.remove(force=True)
    report(f"lab: {name} removed" if container is not None else f"lab: {name} was not up")


def _remove_all(client: docker.DockerClient, lab: Lab) -> None:
    label: dict[str, str | list[str] | bool] = {"label": f"{LABEL}={lab.id}"}
    for container in client.containers.list(all=True, filters=label):
        container.remove(force=True, v=True)
    for volume in client.volumes.list(filters=label):
        volume.remove(force=True)
    for net in client.networks.list(filters=label):
        net.remove()
    for image in client.images.list(filters=label):
        client.images.remove(str(image.id), force=True)


def _drop_cache(lab: Lab, report: Report, cache: bool) -> None:
    if cache:
        shutil.rmtree(lab.cache, ignore_errors=False) if lab.cache.exists() else None
        report("lab: cache removed")
    elif size := _size(lab.cache):
        report(f"lab: kept for the next time: {size / 2**20:.0f} MiB in {lab.cache} (drop it: down --cache)")


def _size(directory: Path) -> int:
    """Bytes of all files below a directory."""
    total = 0
    for base, _, names in os.walk(directory):
        for name in names:
            try:
                total += (Path(base) / name).lstat().st_size
            except FileNotFoundError:  # renamed meanwhile by another command
                continue
    return total


def _check_null_device() -> None:
    """Refuse to work with a damaged /dev/null: package signatures could not be checked, here and in hosts."""
    try:
        mode = Path("/dev/null").stat().st_mode
    except FileNotFoundError:
        mode = 0
    if stat.S_ISCHR(mode) and stat.S_IMODE(mode) & 0o666 == 0o666:
        return
    now = f"has mode {stat.S_IMODE(mode):04o}" if stat.S_ISCHR(mode) else "is not a device"
    repair = ("sudo chmod 666 /dev/null",) if stat.S_ISCHR(mode) else (
        "sudo rm -f /dev/null && sudo mknod -m 666 /dev/null c 1 3",)
    raise UserError(f"this machine's /dev/null {now}, so apt cannot check signatures here or in simulated hosts",
                    ways_out=repair)
