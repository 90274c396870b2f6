"""The depot: the container with everything that hosts fetch (packages, wheels, models, images)."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass, replace
from pathlib import Path

import docker
from docker.models.containers import Container

from boxwright.errors import EXIT_BAD_INPUT, UserError
from boxwright.lab import images, machine, realm
from boxwright.lab.docker import run_in
from boxwright.lab.machine import Machine
from boxwright.lab.payload import Payload
from boxwright.lab.state import LABEL_RECIPE, ROLE_DEPOT, Lab, Report, State
from boxwright.lab.store import engine_image

NAME, ALIAS = "depot", "depot.boxwright.lab"
#: The servers' sources here and in the depot: a Python package called servers.
SERVERS, SERVERS_INSIDE = Path(__file__).with_name("store") / "servers", "/opt/depot/servers"
REGISTRY_FILE = "/etc/docker/registry/lab.yml"
PRIVATE_FILE = "/etc/docker/registry/private.yml"
CERTIFICATE_FILE, KEY_FILE = "/etc/docker/registry/private.pem", "/etc/docker/registry/private.key"
LOGINS_FILE = "/etc/docker/registry/private.htpasswd"
#: The same images behind a certificate of the lab's own authority and a login (realm.py).
PRIVATE_CONFIGURATION = f"""\
version: 0.1
log: {{level: warn}}
storage:
  filesystem: {{rootdirectory: /srv/registry}}
  maintenance: {{readonly: {{enabled: true}}}}
http:
  addr: ":5443"
  tls: {{certificate: {CERTIFICATE_FILE}, key: {KEY_FILE}}}
auth:
  htpasswd: {{realm: lab, path: {LOGINS_FILE}}}
"""
REGISTRY_CONFIGURATION = """\
version: 0.1
log: {level: warn}
storage:
  filesystem: {rootdirectory: /srv/registry}
  delete: {enabled: true}
http: {addr: ":5000"}
"""
#: Seconds for a service to answer once the depot has booted.
READY_TIMEOUT = 30


@dataclass(frozen=True)
class Service:
    """One service of the depot. port: inside; path: a request that it answers when it is up, "" for none."""

    name: str
    port: int
    path: str
    description: str
    command: str


SERVICES = {
    service.name: service
    for service in (
        Service(
            "www",
            80,
            "/simple/",
            "Package repositories and the wheel index",
            "/usr/bin/python3 -m servers.www --port 80 --mount /=/srv/www --mount /simple=/srv/wheels"
            " --control /srv/control/www.json --log /srv/log/www.jsonl",
        ),
        Service(
            "hub",
            8300,
            "/",
            "The model hub",
            "/usr/bin/python3 -m servers.hub --port 8300 --tls-port 8343 --root /srv/models"
            " --control /srv/control/hub.json --log /srv/log/hub.jsonl",
        ),
        Service(
            "registry",
            5000,
            "/v2/",
            "The container registry",
            f"/usr/bin/docker-registry serve {REGISTRY_FILE}",
        ),
        Service(
            "registry-private",
            5443,
            "/v2/",
            "The container registry behind TLS and a login",
            f"/usr/bin/docker-registry serve {PRIVATE_FILE}",
        ),
        Service(
            "tls",
            443,
            "",
            "Packages at 443 and models at 8343, behind TLS of the lab's own authority",
            f"/usr/bin/python3 -m servers.tls --certificate {CERTIFICATE_FILE} --key {KEY_FILE}"
            " --forward 443=80 --forward 8343=8300",
        ),
    )
}


@dataclass(frozen=True)
class Trees:
    """What the depot serves. www: the package repositories; wheels: the wheel index; models: of the hub."""

    www: Path
    wheels: Path
    models: Path


def ensure(client: docker.DockerClient, lab: Lab, state: State, trees: Trees, report: Report) -> Container:
    """The running depot, made anew when anything that it is made of changed. It may still boot."""
    container = machine.find(client, lab, NAME)
    wanted, files = describe(lab, state, trees, images.ensure_depot_image(client, lab, report))
    recipe = wanted.digest(files)
    if container is not None and (
        container.labels.get(LABEL_RECIPE) != recipe or container.status == "created"
    ):
        container.remove(force=True, v=True)
        container = None
    if container is None:
        labels = lab.labels(role=ROLE_DEPOT, name=NAME, recipe=recipe)
        container = machine.create(client, lab, replace(wanted, labels=labels), files)
    if container.status != "running":
        machine.start(client, lab, container, wanted)
    return container


def describe(lab: Lab, state: State, trees: Trees, image: str) -> tuple[Machine, list[Payload]]:
    """What the depot is to be, and its files; the directories that it mounts are made."""
    control, log = lab.directory / "depot" / "control", lab.directory / "depot" / "log"
    # Shared by labs whose images are the same: one of other sources has others by the same tags.
    registry = lab.cache / "registries" / engine_image.recipe()
    for directory in (control, log, registry):
        directory.mkdir(parents=True, exist_ok=True)
    private = realm.ensure(lab.directory / "depot" / "realm", ALIAS)
    files = [
        Payload.text(REGISTRY_FILE, REGISTRY_CONFIGURATION),
        Payload.text(PRIVATE_FILE, PRIVATE_CONFIGURATION),
        Payload.text(LOGINS_FILE, realm.HTPASSWD),
        Payload.text(CERTIFICATE_FILE, private.certificate),
        Payload.text(KEY_FILE, private.key, 0o600, os.getuid()),
    ]
    files += [_unit(service) for service in SERVICES.values()]
    files += [
        Payload(f"{SERVERS_INSIDE}/{path.relative_to(SERVERS)}", path.read_bytes())
        for path in sorted(SERVERS.rglob("*.py"))
    ]
    wanted = Machine(
        name=NAME,
        role=ROLE_DEPOT,
        image=image,
        address=state.depot_address,
        aliases=(ALIAS,),
        labels={},
        binds={
            "/srv/www": (trees.www, False),
            "/srv/wheels": (trees.wheels, False),
            "/srv/models": (trees.models, False),
            "/srv/registry": (registry, True),
            "/srv/control": (control, False),
            "/srv/log": (log, True),
        },
        ports={service.port: state.ports[service.name] for service in SERVICES.values()},
    )
    return wanted, files


def prepare(container: Container, state: State, report: Report) -> None:
    """Wait until every service of the depot answers. Raises UserError with the journal's last lines."""
    machine.wait(container, "the depot", report)
    for service in SERVICES.values():
        port, deadline = state.ports[service.name], time.monotonic() + READY_TIMEOUT
        while not _answers(port, service.path):
            if time.monotonic() > deadline:
                _, journal = run_in(
                    container, ["journalctl", "--no-pager", "-o", "cat", "-n", "8", "-u", service.name]
                )
                raise UserError(
                    f"the depot's {service.name} does not answer at 127.0.0.1:{port}",
                    why=journal.replace("\n", "\n  ") or None,
                    ways_out=(f"docker exec {container.name} systemctl status {service.name}",),
                )
            time.sleep(0.1)


def control(client: docker.DockerClient, lab: Lab, action: str, name: str) -> None:
    """Start, stop or restart one service of the depot, as a test of its loss needs it.

    Raises UserError for another service's name, and when the depot is not up.
    """
    if name not in SERVICES:
        raise UserError(
            f"the depot has no service {name!r}",
            status=EXIT_BAD_INPUT,
            ways_out=("one of: " + ", ".join(SERVICES),),
        )
    container = machine.find(client, lab, NAME)
    if container is None or container.status != "running":
        raise not_up()
    status, output = run_in(container, ["systemctl", action, f"{name}.service"])
    if status:
        raise UserError(f"the depot could not {action} its {name}", why=output)


def not_up() -> UserError:
    """What there is to say where the depot is needed and does not run."""
    return UserError("the depot is not up", ways_out=("python -m boxwright.lab up NAME",))


def choose_ports(state: State, *, running: bool = False) -> None:
    """Give every service a port on 127.0.0.1: the one it had where that is free, else any free one.

    running: the depot has its ports; only services that are new since it was made get one.
    """
    names = [name for name in SERVICES if not running or name not in state.ports]
    with_sockets = [socket.socket() for _ in names]
    try:
        for name, probe in zip(names, with_sockets, strict=True):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", state.ports.get(name, 0)))
            except OSError:
                probe.bind(("127.0.0.1", 0))
            state.ports[name] = probe.getsockname()[1]
    finally:
        for probe in with_sockets:
            probe.close()


def _unit(service: Service) -> Payload:
    """The service's unit. It runs as the user whose directories it writes, who can then remove them."""
    return Payload.text(
        f"/etc/systemd/system/{service.name}.service",
        f"""\
[Unit]
Description={service.description}

[Service]
ExecStart={service.command}
Environment=PYTHONPATH={Path(SERVERS_INSIDE).parent} PYTHONDONTWRITEBYTECODE=1 OTEL_TRACES_EXPORTER=none
User={os.getuid()}
Group={os.getgid()}
AmbientCapabilities=CAP_NET_BIND_SERVICE
Restart=on-failure
RestartSec=1

[Install]
WantedBy=multi-user.target
""",
    )


def _answers(port: int, path: str) -> bool:
    """Whether an HTTP server answers anything at all on a port of 127.0.0.1; without a path, any server."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            if not path:
                return True
            connection.settimeout(5)
            connection.sendall(f"GET {path} HTTP/1.0\r\nHost: {ALIAS}\r\n\r\n".encode())
            return connection.recv(5) == b"HTTP/"
    except OSError:
        return False
