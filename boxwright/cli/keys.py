"""Showing the API key that a box made for its endpoint."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from boxwright.cli import gateways, rolling
from boxwright.cli.ansible_run import HostReport, play
from boxwright.cli.console import say, say_aside, show_json
from boxwright.cli.deployments import hosts_that_deploy
from boxwright.cli.recording import recorded
from boxwright.cli.ssh_trouble import answers, by_host, tell_missed, trouble
from boxwright.cli.targets import targets
from boxwright.cli.turns import addresses, turn
from boxwright.cli.validating import refuse_problems
from boxwright.errors import EXIT_BAD_INPUT, EXIT_FAILED, UserError
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


def fetched(
    inventory: Inventory, wanted: Mapping[str, str], paths: Sequence[Path]
) -> tuple[dict[str, str], dict[str, UserError]]:
    """The keys at these paths of the hosts, and why a host's could not be read."""
    names, variables = list(wanted), {"key_paths": dict(wanted)}
    hosts = play("key.yml", names, paths, quiet=True, variables=variables).hosts
    found, missed = answers(
        hosts, names, "slurp", inventory, otherwise="provision it first: ./invoke provision --host {host}"
    )
    keys = {name: base64.b64decode(one["content"]).decode().strip() for name, one in found.items()}
    return keys, {name: _not_made(error, wanted[name]) for name, error in missed.items()}


def _not_made(error: UserError, path: str) -> UserError:
    """What a box says that has no such file, in words of keys; any other error as it is."""
    if not error.what.lower().startswith("file not found"):
        return error
    return replace(error, what="the box has made no key", why=f"it was not provisioned: {path} is not there")


def rotate(
    hosts: Sequence[str],
    inventories: Sequence[str],
    *,
    every: bool = False,
    deployment: str | None = None,
    as_json: bool = False,
) -> None:
    """Have each box make a new key, its engine ask for it and its gateways know it; a key of the inventory is
    changed there.

    Nothing is changed where one of them cannot be meant. A box that fails does not hold up those after it.
    """
    inventory, names, paths = _meant(hosts, inventories, every, deployment)
    refuse_problems(inventory, names)
    wanted = {name: judged_box(name, inventory.variables(name)) for name in names}
    places = {name: key_path(box, deployment) for name, box in wanted.items()}
    meant = {name: chosen(box, deployment) for name, box in wanted.items()}
    for name, one in meant.items():
        if one.api_key:
            raise UserError(
                f"the key of {one.name} is declared in the inventory",
                where=name,
                status=EXIT_BAD_INPUT,
                ways_out=("change api_key there, then: provision", "leave api_key out: the box makes one"),
            )
    missed, fleet = {}, gateways.fleet(inventory, names, paths)

    def changed(some: Sequence[str]) -> Mapping[str, HostReport]:
        [name] = some
        run = recorded("key", paths, ["--rotate"])
        variables = {"key_path": places[name], "key_deployment": meant[name].name, **run}
        found = play("rotate_key.yml", [name], paths, quiet=as_json, variables=variables).hosts
        behind = fleet.gateways.get(name, ())
        if not behind or name not in found or found[name].failure:
            return found
        told = play("gateway_keys.yml", behind, paths, quiet=as_json, variables=run).hosts
        return gateways.learnt(found, name, {one: told.get(one) for one in behind})

    for name in meant:
        around = addresses([name, *fleet.gateways.get(name, ())], inventory.variables)
        with turn(around, say_aside):
            report = rolling.change(fleet, [name], changed, say_aside).get(name)
        if report is None or report.failure:
            missed[name] = trouble(
                name, report.failure if report else None, variables=inventory.variables(name)
            )
    if missed:
        tell_missed(missed, alone=len(names) == 1, what="its key could not be changed")
        raise SystemExit(EXIT_FAILED)


def show(
    hosts: Sequence[str],
    inventories: Sequence[str],
    *,
    every: bool = False,
    deployment: str | None = None,
    header: bool = False,
    as_json: bool = False,
) -> None:
    """Print the key of each host, read from the box itself; `header` as the HTTP header that carries it."""
    inventory, names, paths = _meant(hosts, inventories, every, deployment)
    refuse_problems(inventory, names)
    boxes = {name: judged_box(name, inventory.variables(name)) for name in names}
    wanted = {name: key_path(box, deployment) for name, box in boxes.items()}
    keys, missed = fetched(inventory, wanted, paths)
    if as_json:
        show_json(by_host({name: {"key": key} for name, key in keys.items()}, missed, empty={"key": None}))
    else:
        for name, key in keys.items():
            line = f"Authorization: Bearer {key}" if header else key
            say(line if len(names) == 1 else f"{name}  {line}")
        tell_missed(missed, alone=len(names) == 1)
    if missed:
        raise SystemExit(EXIT_FAILED)


def _meant(
    hosts: Sequence[str], inventories: Sequence[str], every: bool, deployment: str | None
) -> tuple[Inventory, list[str], list[Path]]:
    """The hosts whose keys are meant; of every host those that declare a deployment."""
    inventory, names, paths = targets(hosts, inventories, every=every)
    names = hosts_that_deploy(inventory, names, deployment, "so there is no key", every=every)
    return inventory, names, paths
