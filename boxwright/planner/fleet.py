"""Several boxes behind one gateway: who is behind it, and what it sends where."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from boxwright.errors import EXIT_REFUSED, UserError
from boxwright.facts.model import HostFacts
from boxwright.spec.box import Box, Deployment

#: The variable that makes a box a gateway, and the one by which it reaches another box.
BOXES, ADDRESS = "gateway_boxes", "gateway_address"


def serves(box: Box, facts: HostFacts) -> bool:
    """Whether models are served there, or were: not of a box that is declared to be a gateway and no more."""
    return bool(box.deployments or facts.releases or not box.settings.get(BOXES))


def members(named: Iterable[str], hosts: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The hosts that names of hosts and groups mean, in the inventory's order.

    hosts: host -> its groups. Raises UserError for a name of neither.
    """
    wanted = set(named)
    strangers = sorted(
        wanted - set(hosts) - {group for groups in hosts.values() for group in groups} - {"all"}
    )
    if strangers:
        raise UserError(
            f"{BOXES} names {', '.join(strangers)}, which is neither a host nor a group of the inventory",
            status=EXIT_REFUSED,
            ways_out=("name hosts or groups of the same inventory",),
        )
    return tuple(host for host in hosts if wanted & {host, "all", *hosts[host]})


def models(gateway: str, boxes: Mapping[str, Box], reached: Mapping[str, str]) -> list[dict[str, Any]]:
    """What a gateway serves: each model's name with the boxes that serve it.

    reached: box -> host name or address by which it is reached. Raises UserError for a deployment that only
    its own box reaches.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for name, box in boxes.items():
        for one in box.deployments:
            server = {
                "box": name,
                "address": _address(gateway, box, one, reached.get(name) or name),
                "port": one.port,
                "key_file": f"{box.config_dir}/engines/{one.name}/api-key",
            }
            found.setdefault(one.name, []).append(server)
    return [{"name": name, "servers": servers} for name, servers in sorted(found.items())]


def _address(gateway: str, box: Box, deployment: Deployment, reached: str) -> str:
    bind = ipaddress.ip_address(deployment.bind.strip("[]"))
    if box.host == gateway:
        return ("::1" if bind.version == 6 else "127.0.0.1") if bind.is_unspecified else str(bind)
    if bind.is_loopback:
        raise UserError(
            f"the gateway {gateway} cannot reach {deployment.name}: it listens on {bind}, for its box alone",
            where=box.host,
            status=EXIT_REFUSED,
            ways_out=(
                f"bind: 0.0.0.0 there, and box_allow_from with the address of {gateway}",
                f"leave {box.host} out of {BOXES} of {gateway}",
            ),
        )
    declared = box.settings.get(ADDRESS)
    if declared:
        return str(declared)
    return reached.strip("[]") if bind.is_unspecified else str(bind)


def lanes(boxes: Sequence[str], gateways: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """The boxes by whom they have to wait for: those with a gateway in common, also by way of a third one.

    gateways: box -> the gateways that it is behind. Each box is in one lane, in the order given.
    """
    found: list[tuple[set[str], set[str]]] = []
    for box in boxes:
        own = set(gateways.get(box, ()))
        met = [lane for lane in found if lane[1] & own]
        joined = ({box}.union(*(lane[0] for lane in met)), own.union(*(lane[1] for lane in met)))
        found = [*(lane for lane in found if lane not in met), joined]
    return [[box for box in boxes if box in lane] for lane, _ in found]
