"""Which deployment a verb means, by what the inventory declares: said before any box is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from boxwright.errors import EXIT_BAD_INPUT, UserError
from boxwright.spec.inventory import Inventory
from boxwright.spec.suggestions import did_you_mean
from boxwright.texts import printable


def names_of(inventory: Inventory, host: str) -> list[str]:
    """The deployments that a host declares."""
    declared: Any = inventory.variables(host).get("box_deployments") or []
    return [str(one["name"]) for one in declared if isinstance(one, dict) and "name" in one]


def hosts_with(
    inventory: Inventory, hosts: Sequence[str], deployment: str | None, *, every: bool = False
) -> list[str]:
    """The hosts that are to be asked about a deployment: all of them, where none is named.

    every: the hosts were not named one by one, and those that do not declare it are left out. Raises
    UserError where a host that was named does not declare it, or none does.
    """
    if deployment is None:
        return list(hosts)
    declared = {host: names_of(inventory, host) for host in hosts}
    found = [host for host in hosts if deployment in declared[host]]
    missing = next((host for host in hosts if host not in found), None)
    if missing is not None and (not every or not found):
        known = {name for host in hosts for name in declared[host]} if every else declared[missing]
        raise UserError(
            f'no deployment is named "{printable(deployment)}"',
            where=None if every else missing,
            status=EXIT_BAD_INPUT,
            ways_out=(f"--deployment NAME, {did_you_mean(deployment, known)}",),
        )
    return found


def chosen(inventory: Inventory, host: str, deployment: str | None) -> str:
    """The one deployment of a host that is meant. Raises UserError where that is not clear."""
    hosts_with(inventory, [host], deployment)
    known = names_of(inventory, host)
    if deployment is not None:
        return deployment
    if len(known) != 1:
        raise UserError(
            "nothing is deployed there" if not known else "it serves several models",
            where=host,
            status=EXIT_BAD_INPUT,
            ways_out=("--deployment one of: " + ", ".join(known),) if known else (),
        )
    return known[0]
