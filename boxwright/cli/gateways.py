"""Gateways of the inventory: which boxes are behind them, and having them send a box requests, or none."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from boxwright.cli import run_logs
from boxwright.cli.ansible_run import HostReport, play
from boxwright.cli.deployments import names_of
from boxwright.planner.fleet import BOXES, members
from boxwright.spec.inventory import Inventory

PLAYBOOK = "gateway_server.yml"
#: The kind of failure of a box that serves and must get no requests: its gateway has not its present key.
STAYS_OUT = "not known to its gateway"

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Fleet:
    """The boxes of a run that are behind gateways. gateways: box -> its gateways; models: box -> its
    deployments; inventories: where a run finds the gateways.
    """

    gateways: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    models: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    inventories: Sequence[Path] = ()

    @property
    def all_gateways(self) -> tuple[str, ...]:
        """Each gateway once."""
        return tuple(dict.fromkeys(one for found in self.gateways.values() for one in found))


def fleet(inventory: Inventory, names: Sequence[str], inventories: Sequence[Path]) -> Fleet:
    """Which of the hosts are behind gateways of the inventory.

    Raises UserError where `gateway_boxes` names what is not there, SpecErrors where it cannot be read.
    """
    gateways = [host for host in inventory.hosts if BOXES in inventory.raw(host)]
    if not gateways:
        return Fleet()
    hosts = {host: inventory.groups(host) for host in inventory.hosts}
    behind: dict[str, list[str]] = {}
    for gateway in gateways:
        named: Any = inventory.variables(gateway).get(BOXES) or []
        for box in members([str(one) for one in named], hosts):
            behind.setdefault(box, []).append(gateway)
    found = {box: tuple(behind[box]) for box in names if box in behind}
    return Fleet(found, {box: tuple(names_of(inventory, box)) for box in found}, inventories)


def _ask(fleet: Fleet, boxes: Sequence[str], state: str) -> list[tuple[str, str, HostReport]]:
    """Have the boxes' gateways do it; box, gateway and what came of it there."""
    pairs = [(box, gateway) for box in boxes for gateway in fleet.gateways[box]]
    wanted = {gateway: {box: list(fleet.models[box])} for box, gateway in pairs}
    variables = {"gateway_turn": wanted, "gateway_turn_state": state}
    report = play(PLAYBOOK, list(wanted), fleet.inventories, quiet=True, variables=variables)
    return [(box, gateway, report.hosts.get(gateway, HostReport(gateway))) for box, gateway in pairs]


def drain(
    fleet: Fleet, boxes: Sequence[str], tell: Tell
) -> tuple[dict[str, dict[str, Any]], set[tuple[str, str]]]:
    """Take boxes out of use at their gateways; those that cannot be changed now, with the failure, and which
    box is out of use where.
    """
    refused, out = {}, set()
    for box, gateway, report in _ask(fleet, boxes, "drained"):
        result = _result(report)
        if _unreachable(report):
            tell(f"{box}: its gateway {gateway} cannot be reached: it is changed without being drained there")
        elif report.failure:
            refused[box] = failure_of(f"its gateway {gateway} does not take it out of use: {_said(report)}")
        for line in result.get("told", ()):
            tell(f"{box}: its gateway {gateway}: {line}")
        if box in result.get("drained", ()):
            out.add((box, gateway))
            tell(f"{box}: its gateway {gateway} sends it no new requests")
    return refused, out


def give_back(
    fleet: Fleet, boxes: Sequence[str], out: set[tuple[str, str]], tell: Tell
) -> list[tuple[str, dict[str, Any]]]:
    """Put boxes back in use, seen by their gateways' own checks; those of which that fails."""
    failures = []
    for box, gateway, report in _ask(fleet, boxes, "ready"):
        if _unreachable(report) and (box, gateway) in out:
            said = f"its gateway {gateway} cannot be reached any more, and may still send it nothing"
            failures.append((box, failure_of(said)))
        elif report.failure and not _unreachable(report):
            failures.append((box, failure_of(f"at its gateway {gateway}: {_said(report)}")))
        elif _result(report).get("changed"):
            tell(f"{box}: its gateway {gateway} finds it well and sends it requests again")
    return failures


def offer(fleet: Fleet, boxes: Sequence[str], tell: Tell) -> None:
    """Let gateways send boxes requests as soon as they answer; nobody waits for that."""
    for box, gateway, report in _ask(fleet, boxes, "offered"):
        if report.failure:
            tell(f"{box}: its gateway {gateway} may still send it nothing: {_said(report)}")
        elif _result(report).get("changed"):
            tell(f"{box}: its gateway {gateway} sends it requests again once it answers")


def _result(report: HostReport) -> Mapping[str, Any]:
    """What the module said."""
    return next(iter(report.results.get("gateway_server", ())), {})


def learnt(
    found: Mapping[str, HostReport], box: str, gateways: Mapping[str, HostReport | None]
) -> dict[str, HostReport]:
    """The box's report with what keeps its gateways from knowing its new key, where something does.

    One that cannot be reached asks the box by the old key, once it is back.
    """
    bad = {name: report for name, report in gateways.items() if report is None or report.failure}
    if not bad:
        return dict(found)
    said = "; ".join(f"{name}: {_said(report or HostReport(name))}" for name, report in bad.items())
    again = shlex.join(["./invoke", "provision", *(word for name in bad for word in ("--host", name)),
                        *run_logs.call.words])  # fmt: skip
    failure = {
        **failure_of(f"its key was changed, and its gateway does not know the new one: {said}"),
        "kind": STAYS_OUT,
        "next": [f"once that is mended: {again}"],
    }
    return {**found, box: replace(found[box], failure=failure)}


def _unreachable(report: HostReport) -> bool:
    return (report.failure or {}).get("kind") == "unreachable"


def _said(report: HostReport) -> str:
    return str((report.failure or {}).get("message") or "it failed without a message")


def failure_of(message: str) -> dict[str, Any]:
    """A failure as the report of a run has it, of what no task of the box did."""
    return {"role": "gateway", "task": None, "action": "gateway_server", "message": message, "kind": "failed",
            "touched": False, "after": [], "left": [], "next": []}  # fmt: skip
