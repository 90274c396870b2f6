"""What a gateway's actions read of a run's variables: the boxes behind it, as they are declared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from boxwright.ansible.declared import plain
from boxwright.planner import fleet
from boxwright.spec.box import ROLE_PREFIXES, Box, box_from_variables


def boxes(variables: Mapping[str, Any], named: Sequence[str]) -> dict[str, Box]:
    """The boxes that `gateway_boxes` names, in the inventory's order. Raises UserError, SpecErrors."""
    known, groups = variables["hostvars"], variables["groups"]
    hosts: dict[str, list[str]] = {str(host): [] for host in groups["all"]}
    for group, inside in groups.items():
        for host in inside:
            hosts.setdefault(str(host), []).append(str(group))
    found = {}
    for host in fleet.members(named, hosts):
        declared = known[host]
        own = [
            name for name in declared if str(name).startswith(("box_", *ROLE_PREFIXES)) and name != "box_plan"
        ]
        found[host] = box_from_variables(host, {str(name): plain(declared[name]) for name in own})
    return found


def reached(variables: Mapping[str, Any], names: Sequence[str]) -> dict[str, str]:
    """Box -> the host name or address by which the controller reaches it."""
    known = variables["hostvars"]
    return {name: str(plain(known[name].get("ansible_host") or name)) for name in names}
