"""The lab's network: a subnet that nothing on this machine uses, and addresses in it."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import docker
from docker.errors import APIError, NotFound
from docker.models.networks import Network
from docker.types import IPAMConfig, IPAMPool

from boxwright.errors import UserError
from boxwright.lab.state import Lab, Report, State

ROUTES = Path("/proc/net/route")
#: Host parts of the addresses: the machine itself, the depot, and the first simulated host.
GATEWAY, DEPOT, FIRST_HOST, LAST_HOST = 1, 2, 10, 250
#: How many subnets the engine may refuse before that is given up.
MOST_TRIES = 20


def candidates() -> Iterable[IPv4Network]:
    """The subnets to try, in order: 172.28.0.0/14, then parts of 10.0.0.0/8 that few sites use."""
    yield from IPv4Network("172.28.0.0/14").subnets(new_prefix=24)
    for second in (213, 197, 173, 151, 127, 89, 61, 37):
        yield from IPv4Network(f"10.{second}.0.0/16").subnets(new_prefix=24)


def choose_subnet(taken: Iterable[IPv4Network], kept: str = "") -> IPv4Network:
    """A /24 that overlaps none of `taken`: the kept one where it is free, else the first free candidate.

    Raises UserError when every candidate is taken.
    """
    # A default route covers everything and says nothing about use.
    used = [network for network in taken if network.prefixlen > 0]
    tries = [IPv4Network(kept), *candidates()] if kept else candidates()
    for candidate in tries:
        if not any(candidate.overlaps(network) for network in used):
            return candidate
    raise UserError(
        "no free subnet for the lab's network in 172.28.0.0/14 and 10.0.0.0/8",
        why="routes and container networks of this machine use them all",
        ways_out=("remove container networks that are no longer used: docker network prune",),
    )


def routes(text: str) -> list[IPv4Network]:
    """The destinations in a routing table as /proc/net/route writes it (hexadecimal, little-endian)."""
    found = []
    for line in text.splitlines()[1:]:
        columns = line.split()
        if len(columns) >= 8:
            destination, mask = (IPv4Address(struct.pack("<L", int(columns[at], 16))) for at in (1, 7))
            found.append(IPv4Network(f"{destination}/{mask}", strict=False))
    return found


def ensure(client: docker.DockerClient, lab: Lab, state: State, report: Report) -> Network:
    """The lab's network, made when it is missing; the state's subnet and addresses follow it."""
    if network := follow(client, lab, state):
        return network
    refused: list[IPv4Network] = []
    while True:
        subnet = choose_subnet([*_taken(client), *refused], state.subnet)
        pool = IPAMPool(subnet=str(subnet), gateway=str(subnet[GATEWAY]))
        try:
            network = client.networks.create(
                lab.network, driver="bridge", labels=lab.labels(), ipam=IPAMConfig(pool_configs=[pool])
            )
        except APIError as error:
            if "overlap" in str(error.explanation) and len(refused) < MOST_TRIES:  # another lab was quicker
                refused.append(subnet)
                continue
            raise UserError(
                f"the engine could not make network {lab.network} ({subnet})", why=error.explanation
            ) from error
        _move(state, subnet)
        report(f"lab: network {subnet} made")
        return network


def follow(client: docker.DockerClient, lab: Lab, state: State) -> Network | None:
    """The lab's network, if it exists; the state's subnet and addresses follow it."""
    try:
        network = client.networks.get(lab.network)
    except NotFound:
        return None
    _move(state, IPv4Network(network.attrs["IPAM"]["Config"][0]["Subnet"]))
    return network


def address_for(name: str, state: State) -> str:
    """The address of a host: the one it has, else the lowest free one. Raises UserError when all are used."""
    if name in state.hosts:
        return state.hosts[name].address
    subnet = IPv4Network(state.subnet)
    used = {host.address for host in state.hosts.values()}
    for number in range(FIRST_HOST, LAST_HOST + 1):
        if (address := str(subnet[number])) not in used:
            return address
    raise UserError(f"the lab's network {subnet} has no address left for {name}")


def _move(state: State, subnet: IPv4Network) -> None:
    """Bring the addresses of the state into `subnet`; each keeps its place in it."""
    state.subnet = str(subnet)
    state.depot_address = str(subnet[DEPOT])
    for host in state.hosts.values():
        host.address = str(subnet[int(IPv4Address(host.address)) & 0xFF])


def _taken(client: docker.DockerClient) -> list[IPv4Network]:
    taken = routes(ROUTES.read_text(encoding="ascii"))
    for network in client.networks.list():
        for pool in (network.attrs.get("IPAM") or {}).get("Config") or []:
            if "." in pool.get("Subnet", ""):
                taken.append(IPv4Network(pool["Subnet"]))
    return taken
