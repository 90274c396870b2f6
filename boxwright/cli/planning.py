"""The verbs that answer before anything is touched: plan, facts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from boxwright import catalog, planner
from boxwright import facts as host_facts
from boxwright.cli import drawing, lab, recorded
from boxwright.cli.ansible_run import play
from boxwright.cli.console import show_json
from boxwright.cli.ssh_trouble import answers, by_host, tell_missed
from boxwright.cli.targets import targets
from boxwright.cli.validating import refuse_problems
from boxwright.errors import EXIT_FAILED, EXIT_REFUSED, UserError
from boxwright.facts import HostFacts
from boxwright.spec.inventory import Inventory
from boxwright.spec.validate import judged_box


def plan(
    hosts: Sequence[str],
    inventories: Sequence[str],
    *,
    every: bool = False,
    offline: bool = False,
    facts_file: str | None = None,
    as_json: bool = False,
) -> None:
    """Plan each host and show it; exit status 3: one cannot work as declared, 1: one cannot be asked."""
    inventory, names, paths = targets(hosts, inventories, every=every)
    refuse_problems(inventory, names)
    missed: dict[str, UserError] = {}
    if facts_file is not None:
        known = recorded.facts_of(facts_file, names)
        plans = {name: _plan(name, inventory, known[name]) for name in names}
    elif offline:
        plans = {name: _plan(name, inventory, None) for name in names}
    else:
        plans, missed = _plans_on_hosts(names, inventory, paths, as_json=as_json)
    for name, found in plans.items():
        locate(name, found, inventory)
    alone = len(names) == 1 and not every
    if as_json:
        show_json(by_host(plans, missed, alone=alone))
    else:
        for name, found in plans.items():
            drawing.draw_plan(name, found)
        tell_missed(missed, alone=alone, what="could not be planned")
    if missed:
        raise SystemExit(EXIT_FAILED)
    if any(found["gates"] for found in plans.values()):
        raise SystemExit(EXIT_REFUSED)


def _plan(name: str, inventory: Inventory, known: HostFacts | None) -> dict[str, Any]:
    box = judged_box(name, inventory.variables(name))
    loaded = catalog.load()
    return planner.plan(box, known or planner.offline_facts(box, loaded), loaded).to_json()


def locate(name: str, plan: dict[str, Any], inventory: Inventory) -> None:
    """Give each finding its place: the file and line that declare what it is about, or that list the host."""
    for finding in (*plan["gates"], *plan["advice"]):
        place = inventory.location(name, finding["path"]) if finding["path"] else None
        finding["place"] = str(place or inventory.place_of(name) or "") or None


def _plans_on_hosts(
    names: Sequence[str], inventory: Inventory, paths: Sequence[Path], *, as_json: bool
) -> tuple[dict[str, dict[str, Any]], dict[str, UserError]]:
    lab.ensure_simulated(inventory, names, as_json=as_json)
    report = play("plan.yml", names, paths, quiet=True)
    found, missed = answers(report.hosts, names, "plan", inventory)
    for error in missed.values():
        error.ways_out += ("without a connection, from the declared cards: --offline",)
    return {name: dict(one["ansible_facts"]["box_plan"]) for name, one in found.items()}, missed


def facts(
    hosts: Sequence[str], inventories: Sequence[str], *, every: bool = False, as_json: bool = False
) -> None:
    """Read the facts of each host over one connection and show them."""
    inventory, names, paths = targets(hosts, inventories, every=every)
    refuse_problems(inventory, names)
    lab.ensure_simulated(inventory, names, as_json=as_json)
    found, missed = read_facts(names, inventory, paths)
    alone = len(names) == 1 and not every
    if as_json:
        show_json(by_host({name: one.to_json() for name, one in found.items()}, missed, alone=alone))
    else:
        for name, one in found.items():
            drawing.draw_facts(name, one)
        tell_missed(missed, alone=alone)
    if missed:
        raise SystemExit(EXIT_FAILED)


def read_facts(
    names: Sequence[str], inventory: Inventory, inventories: Sequence[Path]
) -> tuple[dict[str, HostFacts], dict[str, UserError]]:
    """The facts of each host, asked over SSH, and why another does not tell them."""
    report = play("facts.yml", names, inventories, quiet=True)
    found, missed = answers(report.hosts, names, "host_facts", inventory)
    return {name: host_facts.parse(one["raw"], name) for name, one in found.items()}, missed
