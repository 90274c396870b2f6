"""Going back to an earlier release by hand."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from boxwright.cli import gateways, rolling
from boxwright.cli.ansible_run import HostReport, play
from boxwright.cli.console import say, say_aside, show_json
from boxwright.cli.deployments import hosts_that_deploy
from boxwright.cli.recording import recorded
from boxwright.cli.ssh_trouble import explain, tell_end
from boxwright.cli.targets import targets
from boxwright.cli.turns import addresses, turn
from boxwright.errors import EXIT_BAD_INPUT, EXIT_FAILED, UserError
from boxwright.texts import printable


def rollback(
    hosts: Sequence[str],
    inventories: Sequence[str],
    *,
    every: bool = False,
    deployment: str | None = None,
    to: str | None = None,
    as_json: bool = False,
) -> None:
    """Have the release before the present one serve again, or the one that `to` names."""
    if to is not None and not re.fullmatch("[0-9a-f]{1,12}", to):
        raise UserError(
            f"--to {printable(to)}: the id of a release is twelve hexadecimal digits, or the first of them",
            status=EXIT_BAD_INPUT,
            ways_out=("leave it out, for the release before the present one", "./invoke history names them"),
        )
    inventory, names, paths = targets(hosts, inventories, every=every)
    names = hosts_that_deploy(inventory, names, deployment, "so there is no release", every=every)
    wanted = {"rollback_deployment": deployment, "rollback_to": to}
    variables = {name: value for name, value in wanted.items() if value} | recorded("rollback", paths)
    fleet = gateways.fleet(inventory, names, paths)

    def back(some: Sequence[str]) -> Mapping[str, HostReport]:
        return play("rollback.yml", some, paths, quiet=as_json, variables=variables).hosts

    with turn(addresses([*names, *fleet.all_gateways], inventory.variables), say_aside):
        reports = rolling.change(fleet, names, back, say_aside if as_json else say)
    found = {name: outcome(reports.get(name)) for name in names}
    for name in names:
        explain(name, found[name]["failure"], inventory)
    if as_json:
        show_json({"hosts": found})
    else:
        for name in names:
            _tell(name, found[name])
    if any(one["failure"] for one in found.values()):
        raise SystemExit(EXIT_FAILED)


def outcome(host: HostReport | None) -> dict[str, Any]:
    """What became of one host, by stable keys. serving: what was seen of the release that serves now."""
    if host is None:
        missed = {"kind": "failed", "message": "the host was not visited"}
        return {"changed": False, "serving": None, "releases": [], "image": None, "failure": missed}
    result = next(iter(host.results.get("engine_rollback", ())), {})
    return {
        "changed": bool(result.get("changed")),
        "serving": next(iter(result.get("results") or ()), None),
        "releases": list(result.get("releases") or ()),
        "image": result.get("image"),
        "failure": dict(host.failure) if host.failure else None,
    }


def _tell(name: str, found: Mapping[str, Any]) -> None:
    serving = found["serving"]
    if found["failure"]:
        tell_end(name, found["failure"])
    if found["failure"] or not serving:
        return
    say()
    say(f"{name}: {serving['name']} serves release {serving['release']} ({found['image']})")
    if not found["changed"]:
        say("  note      it did so before: nothing had to change")
    say(f"  answered  {' '.join(str(serving['answer']).split())}")
    for one in found["releases"]:
        say(f"  {'current' if one['current'] else '':<9} {one['id']}  {one['made']}  {one['image']}")
    say(
        "  note      provision brings back what the inventory declares: declare there what is to stay, "
        f"image: {found['image']} among it"
    )
