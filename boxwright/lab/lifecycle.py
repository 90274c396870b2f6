"""Up and down: the whole lab as one thing."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import docker
from docker.models.containers import Container

from boxwright.errors import UserError
from boxwright.lab import depot, hosts, images, machine, network, ssh
from boxwright.lab.adoption import adopt
from boxwright.lab.docker import engine, engine_errors
from boxwright.lab.hosts import HostRequest
from boxwright.lab.installation import installed
from boxwright.lab.state import (
    LABEL,
    LABEL_NAME,
    LABEL_ROLE,
    ROLE_HOST,
    Lab,
    Report,
    State,
    Stopwatch,
    locked,
)
from boxwright.lab.status import size_of
from boxwright.lab.store import engine_image
from boxwright.lab.supply import Supply, prune

#: What was resolved for hosts that go with the lab: the lock file of its inventory.
LOCK_FILE = Path("inventory/lab/.boxwright.lock.json")


@engine_errors("have the lab run")
def up(requested: Sequence[HostRequest], report: Report = print) -> State:
    """Have the requested hosts run, with network, images and depot; what is there already stays as it is.

    The state that comes back knows each host's address. Raises UserError: what is missing and how to get it.
    """
    for request in requested:
        request.check()
    watch = Stopwatch()
    started: list[HostRequest] = []
    lab = Lab.here()
    check_null_device(Path("/dev/null"))
    client = engine(report)
    with ThreadPoolExecutor(max_workers=len(requested) + 4) as pool:
        supply = Supply.start(pool, lab, report)
        try:
            with locked(lab.directory / "lock", report, "with this lab"):
                started = [one for one in requested if not _runs(client, lab, one.name)]
                state, containers = _start_hosts(client, lab, requested, report)
            ready = [
                pool.submit(hosts.prepare, container, name, report) for name, container in containers.items()
            ]
            # The depot has a lock of its own: others can have hosts while its trees are made.
            with locked(lab.directory / "depot.lock", report, "with this lab's depot"):
                trees = supply.trees()
                depot.prepare(depot.ensure(client, lab, state, trees, report), state, report)
                prune(client, trees.www.parent, keep=trees.www)
                supply.push(lab, f"http://127.0.0.1:{state.ports['registry']}", report)
            for host in ready:
                host.result()
        except UserError:
            pool.shutdown(wait=False, cancel_futures=True)
            if supply.busy:
                report("lab: failed; what is being made for the cache is finished first")
            raise
    # What ran already is not worth a word before each verb.
    for request in started:
        address = state.hosts[request.name].address
        report(f"lab: {request.name} ({request.rig}, {request.suite}) is up at {address}")
    if started:
        report(f"lab: ready in {watch}")
    return state


@engine_errors("remove the lab")
def down(names: Sequence[str] | None = None, report: Report = print, *, cache: bool = False) -> None:
    """Remove the named hosts, or without names the whole lab; with `cache` also what is kept for the next.

    Nothing is touched that does not carry the lab's label. Raises UserError when something cannot be removed.
    """
    lab = Lab.here()
    with locked(lab.directory / "lock", report, "with this lab"):
        client = engine(report) if installed() else None
        if client is not None and names:
            _remove_hosts(client, lab, names, report)
            return
        if client is not None:
            report("lab: removing hosts, network and images; this takes up to a minute")
            _remove_all(client, lab)
        (lab.root / LOCK_FILE).unlink(missing_ok=True)
        shutil.rmtree(lab.directory)
        report("lab: containers, volumes, network and images are gone")
    if cache:
        _drop_cache(client, lab, report)
    elif size := size_of(lab.cache):
        report(
            f"lab: kept for the next time: {size / 2**20:.0f} MiB in {lab.cache} (to drop it: down --cache)"
        )


@engine_errors("have an earlier release in the registry")
def earlier_engine(release: str, report: Report = print) -> None:
    """Have the image of an earlier release of the engine in the registry of a lab that is up.

    Raises UserError when it is not up, and when the image cannot be made.
    """
    lab = Lab.here()
    client = engine(report, start=False)
    if not _runs(client, lab, depot.NAME):
        raise depot.not_up()
    engine_image.build(lab.cache, report, release)
    with locked(lab.directory / "depot.lock", report, "with this lab's depot"):
        registry = f"http://127.0.0.1:{State.load(lab).ports['registry']}"
        engine_image.push(registry, lab.cache, report, release)


def control_depot(action: str, service: str) -> None:
    """Start, stop or restart one service of the depot (www, hub, registry), to see what its loss does."""
    depot.control(engine(print, start=False), Lab.here(), action, service)


def check_null_device(device: Path) -> None:
    """Refuse to work with a damaged /dev/null: package signatures could not be checked, here and in hosts.

    Something once left a machine's at mode 0644, and apt said no more than "cannot create /dev/null".
    """
    try:
        mode = device.stat().st_mode
    except FileNotFoundError:
        mode = 0
    if not stat.S_ISCHR(mode):
        raise UserError(
            f"this machine's {device} is not a device, so apt cannot check signatures",
            ways_out=(f"sudo rm -f {device} && sudo mknod -m 666 {device} c 1 3",),
        )
    if stat.S_IMODE(mode) & 0o666 != 0o666:
        raise UserError(
            f"this machine's {device} has mode {stat.S_IMODE(mode):04o}, so apt cannot check signatures, "
            "here or in simulated hosts",
            ways_out=(f"sudo chmod 666 {device}",),
        )


def _start_hosts(
    client: docker.DockerClient, lab: Lab, requested: Sequence[HostRequest], report: Report
) -> tuple[State, dict[str, Container]]:
    """Start the hosts with all that they need to boot; the state is written after each."""
    state = State.load(lab)
    adopt(client, lab, state)
    for request in requested:
        hosts.check_against(state, request)
    network.ensure(client, lab, state, report)
    depot.choose_ports(state, running=_runs(client, lab, depot.NAME))
    ssh.ensure_key(lab, report)
    for suite in dict.fromkeys(request.suite for request in requested):
        images.ensure_host_image(client, lab, suite, report)
    containers = {}
    for request in requested:
        containers[request.name] = hosts.ensure(client, lab, state, request, report)
        state.save(lab)
    ssh.configure(lab, {name: host.address for name, host in state.hosts.items()})
    return state, containers


def _runs(client: docker.DockerClient, lab: Lab, name: str) -> bool:
    container = machine.find(client, lab, name)
    return container is not None and container.status == "running"


def _remove_hosts(client: docker.DockerClient, lab: Lab, names: Sequence[str], report: Report) -> None:
    state = State.load(lab)
    adopt(client, lab, state)
    for name in names:
        container = machine.find(client, lab, name)
        if container is not None and container.labels.get(LABEL_ROLE) != ROLE_HOST:
            raise UserError(f"{name} is not a host", ways_out=("`down` without names removes the whole lab",))
        if container is not None:
            container.remove(force=True, v=True)
        for volume in client.volumes.list(filters={"label": [f"{LABEL}={lab.id}", f"{LABEL_NAME}={name}"]}):
            volume.remove(force=True)
        state.hosts.pop(name, None)
        report(f"lab: {name} removed" if container is not None else f"lab: {name} was not up")
    ssh.configure(lab, {name: host.address for name, host in state.hosts.items()})
    state.save(lab)


def _remove_all(client: docker.DockerClient, lab: Lab) -> None:
    label: dict[str, str | list[str] | bool] = {"label": f"{LABEL}={lab.id}"}
    for container in client.containers.list(all=True, filters=label):
        container.remove(force=True, v=True)
    for volume in client.volumes.list(filters=label):
        volume.remove(force=True)
    for net in client.networks.list(filters=label):
        net.remove()
    # The depot's image was made on the host's: those without children go first.
    for image in sorted(
        client.images.list(filters=label), key=lambda image: image.attrs["Created"], reverse=True
    ):
        client.images.remove(str(image.id), force=True)


def _drop_cache(client: docker.DockerClient | None, lab: Lab, report: Report) -> None:
    """Remove the cache. Raises UserError when another checkout's lab serves from it."""
    others = client.containers.list(filters={"label": [LABEL, f"{LABEL_ROLE}=depot"]}) if client else []
    if others:
        raise UserError(
            f"the cache is in use by another lab (container {others[0].name})",
            where=str(lab.cache),
            ways_out=("bring that lab down first, from its own checkout",),
        )
    if lab.cache.exists():
        try:
            shutil.rmtree(lab.cache)
        except OSError as error:
            raise UserError(
                "the cache could not be removed",
                where=str(error.filename or lab.cache),
                why=error.strerror,
                ways_out=(f"sudo rm -r {lab.cache}",),
            ) from error
    report("lab: cache removed")
