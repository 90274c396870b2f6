"""What runs of the lab, as values and as a table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import requests
from docker.errors import APIError

from boxwright.errors import UserError
from boxwright.lab.adoption import adopt
from boxwright.lab.docker import engine
from boxwright.lab.state import LABEL, LABEL_NAME, Lab, State


@dataclass(frozen=True)
class HostStatus:
    """One simulated host. state: the engine's word for its container, "missing", or "unknown" without one."""

    name: str
    rig: str
    suite: str
    address: str
    state: str


@dataclass(frozen=True)
class LabStatus:
    """The lab as it is. depot: as HostStatus.state; ports: the depot's on 127.0.0.1; cache_bytes: on disk.

    ssh_config: of the hosts, for `ssh -F`.
    """

    id: str
    subnet: str
    hosts: tuple[HostStatus, ...]
    depot: str
    depot_address: str
    ports: dict[str, int]
    cache: str
    cache_bytes: int
    ssh_config: str

    def to_json(self) -> dict[str, Any]:
        """The status as plain values."""
        return asdict(self)

    def table(self) -> str:
        """The status as text, a line a host."""
        rows = [(host.name, host.rig, host.suite, host.address, host.state) for host in self.hosts]
        if rows or self.depot == "running":
            rows.append(("depot", "-", "-", self.depot_address, self.depot))
            lines = _columns([("host", "rig", "suite", "address", "state"), *rows])
        else:
            lines = ["no host is up"]
        if self.depot == "running":
            published = "  ".join(f"{name} 127.0.0.1:{port}" for name, port in sorted(self.ports.items()))
            lines.append(f"depot on this machine: {published}")
        return "\n".join([*lines, f"cache: {self.cache_bytes / 2**20:.0f} MiB in {self.cache}"])


def status() -> LabStatus:
    """What runs of this lab; starts and installs nothing."""
    lab = Lab.here()
    state = State.load(lab)
    running: dict[str, str] = {}
    missing = "missing"
    try:
        client = engine(lambda _: None, start=False)
        for container in client.containers.list(all=True, filters={"label": f"{LABEL}={lab.id}"}):
            running[container.labels.get(LABEL_NAME, "")] = container.status
        adopt(client, lab, state)
    except (UserError, APIError, requests.RequestException):
        missing = "unknown"
    found = [
        HostStatus(name, host.rig, host.suite, host.address, running.get(name, missing))
        for name, host in sorted(state.hosts.items())
    ]
    return LabStatus(
        id=lab.id,
        subnet=state.subnet,
        hosts=tuple(found),
        depot=running.get("depot", missing),
        depot_address=state.depot_address,
        ports=dict(state.ports),
        cache=str(lab.cache),
        cache_bytes=size_of(lab.cache),
        ssh_config=str(lab.directory / "ssh_config"),
    )


def size_of(directory: Path) -> int:
    """Bytes of all files below a directory."""
    total = 0
    for base, _, names in os.walk(directory):
        for name in names:
            try:
                total += (Path(base) / name).lstat().st_size
            except FileNotFoundError:  # renamed meanwhile by another command
                continue
    return total


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
