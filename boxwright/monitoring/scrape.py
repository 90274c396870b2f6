"""What a Prometheus has to ask: the node exporters and engines of the boxes that declare monitoring.

An engine is asked over the declared endpoint, and without its key: the box that watches holds nobody's.
What cannot be reached so is refused with the reason: an engine that is never seen looks like a well one.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from boxwright.engines import engine
from boxwright.errors import UserError
from boxwright.spec.box import Box, Deployment
from boxwright.texts import printable

#: The node exporter's own port.
NODE_PORT = 9100
ENGINES, NODES = "boxwright-engine", "boxwright-node"
WILDCARDS = ("0.0.0.0", "::", "*", "")


@dataclass(frozen=True)
class Watched:
    """A box that declares monitoring. address: how others reach it. exporter: where its exporter listens."""

    box: Box
    address: str
    exporter: str


@dataclass(frozen=True)
class Target:
    """What is asked. job: of Prometheus. where: host and port."""

    job: str
    where: str
    labels: tuple[tuple[str, str], ...]
    path: str = "/metrics"


def targets(server: str, address: str, boxes: Sequence[Watched]) -> list[Target]:
    """Everything that the Prometheus of the box `server` asks; address: of that box, as the others know it.

    Raises UserError with all that it could not reach.
    """
    found: list[Target] = []
    refused: list[UserError] = []
    for one in boxes:
        for kind in (_node, _engines):
            try:
                found += kind(server, address, one)
            except UserError as error:
                refused.append(error)
    if refused:
        raise _together(refused)
    return found


def _together(refused: Sequence[UserError]) -> UserError:
    if len(refused) == 1:
        return refused[0]
    lines = [f"{error.where}: {error.what}" for error in refused]
    ways = dict.fromkeys(way for error in refused for way in error.ways_out)
    return UserError("what is to be watched cannot be reached:\n" + "\n".join(lines), ways_out=tuple(ways))


def _node(server: str, address: str, one: Watched) -> list[Target]:
    where = _reached(server, one, one.exporter)
    if where is None:
        raise UserError(
            f"its node exporter listens on {printable(one.exporter)} alone, and {server} cannot ask it there",
            where=one.box.host,
            ways_out=(
                f"monitoring_bind: an address of {one.box.host} in a network that it shares with {server}",
                f"monitoring_server: true on {one.box.host} itself",
            ),
        )
    return [Target(NODES, joined(where, NODE_PORT), (("box", one.box.host),))]


def _engines(server: str, address: str, one: Watched) -> list[Target]:
    return [_engine(server, address, one, deployment) for deployment in one.box.deployments]


def _engine(server: str, address: str, one: Watched, deployment: Deployment) -> Target:
    path = engine.of(deployment.engine).probes.metrics
    place = f"{one.box.host}: deployment {printable(deployment.name)}"
    if engine.of(deployment.engine).guard_option and path not in deployment.open_paths:
        raise UserError(
            f"{path} asks for the key, and Prometheus is given none",
            where=place,
            ways_out=(f"open_paths: [{path}]",),
        )
    where = _reached(server, one, deployment.bind)
    if where is None:
        raise UserError(
            f"it listens on {printable(deployment.bind)} alone, and {server} cannot ask it there",
            where=place,
            ways_out=(
                "bind: an address of the box in a network that both share, with box_allow_from: "
                f"[{printable(address)}, …]",
                f"monitoring_server: true on {one.box.host} itself",
            ),
        )
    if one.box.host != server and one.box.allow_from and _is_shut_out(address, one.box.allow_from):
        raise UserError(
            f"box_allow_from lets {', '.join(one.box.allow_from)} in, and {server} is {printable(address)}",
            where=place,
            ways_out=(f"{printable(address)} in box_allow_from of {one.box.host}",),
        )
    labels = (("box", one.box.host), ("deployment", deployment.name))
    return Target(ENGINES, joined(where, deployment.port), labels, path)


def _reached(server: str, one: Watched, bind: str) -> str | None:
    """The address at which a listener of a box is asked by `server`; None where it is not."""
    if one.box.host == server:
        return local(bind)
    if bind in WILDCARDS:
        return one.address
    return None if is_loopback(bind) else bind.strip("[]")


def local(bind: str) -> str:
    """The address at which a box asks a listener of its own."""
    return "127.0.0.1" if bind in WILDCARDS or bind == "localhost" else bind.strip("[]")


def is_loopback(bind: str) -> bool:
    """Whether only the box itself reaches a listener."""
    try:
        return ipaddress.ip_address(bind.strip("[]")).is_loopback
    except ValueError:
        return bind == "localhost"


def _is_shut_out(address: str, allowed: Sequence[str]) -> bool:
    """Whether an address is in none of the networks; a name may be in any."""
    try:
        one = ipaddress.ip_address(address)
    except ValueError:
        return False
    networks = [ipaddress.ip_network(text, strict=False) for text in allowed]
    return not any(one.version == network.version and one in network for network in networks)


def joined(host: str, port: int) -> str:
    """`host:port`, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def groups(found: Sequence[Target], job: str) -> list[dict[str, Any]]:
    """The targets of a job as Prometheus's file-based discovery reads them."""
    return list(_groups(found, job))


def _groups(found: Sequence[Target], job: str) -> Iterator[dict[str, Any]]:
    for one in found:
        if one.job == job:
            yield {"targets": [one.where], "labels": dict(one.labels)}
