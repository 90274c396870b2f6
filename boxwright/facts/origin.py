"""Where a host's Docker comes from, beside its packages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from boxwright.facts.raw import Raw

#: The unit that the packages bring.
UNIT = "docker.service"


@dataclass(frozen=True)
class Origin:
    """What stands for Docker.

    program: the daemon's path, of its unit where it has one; None without a daemon. snap: it is one, or a
    snap's daemon holds the socket. podman: `docker` is Podman in its clothes. rootless: users whose own
    daemon answers. holder: what holds the system's socket and is not docker.service: a unit, or a process
    without one; None otherwise.
    """

    program: str | None = None
    snap: bool = False
    podman: bool = False
    rootless: tuple[str, ...] = ()
    holder: str | None = None


def origin(data: Raw) -> Origin:
    """What the traces say; nothing where they were not looked for."""
    traces = data.object("docker_traces")
    programs, units = _mapping(traces.get("programs")), _mapping(traces.get("units"))
    client, daemon = _mapping(programs.get("docker")), _mapping(programs.get("dockerd"))
    unit, snapped = _mapping(units.get(UNIT)), _mapping(units.get("snap.docker.dockerd.service"))
    holder = _holder(traces.get("listeners"))
    places = [str(one.get("path") or "") for one in (client, daemon)]
    snap = bool(
        snapped.get("load") == "loaded"
        or any(place.startswith("/snap/") for place in places)
        or (holder or "").startswith("snap.")
    )
    users = traces.get("users")
    return Origin(
        program=str(unit.get("program") or daemon.get("path") or "") or None,
        snap=snap,
        podman=bool(client.get("podman")) or (holder or "").startswith("podman"),
        rootless=tuple(
            str(one.get("user"))
            for one in (users if isinstance(users, (list, tuple)) else ())
            if isinstance(one, Mapping)
        ),
        holder=holder,
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _holder(listeners: object) -> str | None:
    """The unit, or the process without one, that listens in docker.service's place.

    systemd itself listens for the unit that it starts on the first call.
    """
    for one in listeners if isinstance(listeners, (list, tuple)) else ():
        if not isinstance(one, Mapping) or one.get("process") == "systemd":
            continue
        units = re.findall(r"[^/\s:]+\.(?:service|scope)(?=/|$)", str(one.get("cgroup") or ""), re.MULTILINE)
        if UNIT not in units:
            process = str(one.get("process") or "a process")
            return str(units[-1]) if units and units[-1].endswith(".service") else process
    return None
