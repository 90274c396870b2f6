"""Showing the API key that a box made for its endpoint."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from boxwright.cli.ansible_run import play
from boxwright.cli.console import say, say_aside, show_json
from boxwright.cli.recording import recorded
from boxwright.cli.ssh_trouble import trouble
from boxwright.cli.targets import targets
from boxwright.cli.turns import addresses, turn
from boxwright.cli.validating import refuse_problems
from boxwright.errors import EXIT_BAD_INPUT, UserError
from boxwright.spec.box import Box, Deployment
from boxwright.spec.inventory import Inventory
from boxwright.spec.validate import judged_box
from boxwright.texts import printable


def key_path(box: Box, deployment: str | None) -> str:
    """Where the box keeps the key of a deployment. Raises UserError when it is not clear which one."""
    return f"{box.config_dir}/engines/{chosen(box, deployment).name}/api-key"


def chosen(box: Box, deployment: str | None) -> Deployment:
    """The deployment that is meant. Raises UserError when it is not clear which one."""
    names = [one.name for one in box.deployments]
    if not names:
        raise UserError(
            "nothing is deployed there, so there is no key", where=box.host, status=EXIT_BAD_INPUT
        )
    if deployment is not None and deployment not in names:
        raise UserError(
            f'no deployment is named "{printable(deployment)}"',
            where=box.host,
            status=EXIT_BAD_INPUT,
            ways_out=("--deployment one of: " + ", ".join(names),),
        )
    if deployment is None and len(names) > 1:
        raise UserError(
            "it serves several models, each with its own key",
            where=box.host,
            status=EXIT_BAD_INPUT,
            ways_out=("--deployment one of: " + ", ".join(names),),
        )
    return next(one for one in box.deployments if one.name == (deployment or names[0]))


def fetched(name: str, box: Box, deployment: str | None, inventory: Inventory, paths: Sequence[Path]) -> str:
    """The key of a deployment, read from the box itself. Raises UserError."""
    variables = {"key_path": key_path(box, deployment)}
    report = play("key.yml", [name], paths, quiet=True, variables=variables).hosts.get(name)
    if report is None or report.failure:
        raise trouble(
            name,
            report.failure if report else None,
            otherwise=(f"provision it first: ./invoke provision --host {name}",),
            variables=inventory.variables(name),
        )
    return base64.b64decode(report.results["slurp"][0]["content"]).decode().strip()


def rotate(
    hosts: Sequence[str],
    inventories: Sequence[str],
    *,
    deployment: str | None = None,
    as_json: bool = False,
) -> None:
    """Have each box make a new key, and its engine ask for it; a key of the inventory is changed there."""
    inventory, names, paths = targets(hosts, inventories)
    refuse_problems(inventory, names)
    for name in names:
        box = judged_box(name, inventory.variables(name))
        path = key_path(box, deployment)
        wanted = next(one for one in box.deployments if path.endswith(f"/{one.name}/api-key"))
        if wanted.api_key:
            raise UserError(
                f"the key of {wanted.name} is declared in the inventory",
                where=name,
                status=EXIT_BAD_INPUT,
                ways_out=("change api_key there, then: provision", "leave api_key out: the box makes one"),
            )
        variables = {
            "key_path": path,
            "key_deployment": wanted.name,
            **recorded("key", paths, ["--rotate"]),
        }
        with turn(addresses([name], inventory.variables), say_aside):
            report = play("rotate_key.yml", [name], paths, quiet=as_json, variables=variables).hosts.get(name)
        if report is None or report.failure:
            raise trouble(name, report.failure if report else None)


def show(
    hosts: Sequence[str],
    inventories: Sequence[str],
    *,
    deployment: str | None = None,
    header: bool = False,
    as_json: bool = False,
) -> None:
    """Print the key of each host, read from the box itself; `header` as the HTTP header that carries it."""
    inventory, names, paths = targets(hosts, inventories)
    refuse_problems(inventory, names)
    keys: dict[str, Any] = {}
    for name in names:
        box = judged_box(name, inventory.variables(name))
        keys[name] = fetched(name, box, deployment, inventory, paths)
    if as_json:
        show_json(keys)
    else:
        for name, value in keys.items():
            value = f"Authorization: Bearer {value}" if header else value
            say(value if len(keys) == 1 else f"{name}  {value}")
