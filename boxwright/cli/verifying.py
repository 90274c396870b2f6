"""The verb verify: whether boxes still are as declared, and their models still answer; nothing is changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from boxwright.cli import lab
from boxwright.cli.ansible_run import HostReport, play
from boxwright.cli.console import say, show_json, wrapped
from boxwright.cli.recording import recorded
from boxwright.cli.ssh_trouble import reason, told_of
from boxwright.cli.targets import targets
from boxwright.cli.validating import refuse_problems
from boxwright.errors import EXIT_FAILED


def verify(
    hosts: Sequence[str], inventories: Sequence[str], *, every: bool = False, as_json: bool = False
) -> None:
    """Say of each box what is not as declared; exit status 1 when anything is not."""
    inventory, names, paths = targets(hosts, inventories, every=every)
    refuse_problems(inventory, names)
    lab.ensure_simulated(inventory, names, as_json=as_json)
    report = play("verify.yml", names, paths, quiet=True, variables=recorded("verify", paths))
    found = {name: summary(report.hosts.get(name, HostReport(name))) for name in names}
    if as_json:
        show_json(found)
    else:
        for name, one in found.items():
            draw(name, one)
    if not all(one["as_declared"] for one in found.values()):
        raise SystemExit(EXIT_FAILED)


def summary(host: HostReport) -> dict[str, Any]:
    """What a run came to on a box, by stable keys.

    failure: why it could not be looked at. changes: of the plan, which a provision would make. failed_checks:
    of the roles' own. deployments: what the models answered.
    """
    plan = next(iter(host.results.get("plan", ())), {}).get("ansible_facts", {}).get("box_plan")
    went_away = host.failure is not None and host.failure.get("kind") == "unreachable"
    if plan is None or went_away:
        nothing = {
            "as_declared": False,
            "changes": (plan or {}).get("changes") or [],
            "gates": (plan or {}).get("gates") or [],
            "failed_checks": [],
            "deployments": [],
        }
        return told_of(nothing, reason(host.name, host.failure))
    checks = [
        {"role": one.get("role"), "check": one.get("task"), "message": one.get("message")}
        for one in host.failures
        if one.get("role")
    ]
    answers = [
        {key: entry.get(key) for key in ("name", "answer", "seconds")}
        for gate in host.results.get("engine_gate", ())
        for entry in gate.get("results") or ()
    ]
    changes, gates = plan.get("changes") or [], plan.get("gates") or []
    return told_of(
        {
            "as_declared": not (checks or changes or gates or host.failure),
            "changes": changes,
            "gates": gates,
            "failed_checks": checks,
            "deployments": answers,
        }
    )


def draw(name: str, one: Mapping[str, Any]) -> None:
    """What a person reads of one box."""
    if one["failure"]:
        say(wrapped(f"{name}: could not be looked at: {one['failure']}", hang=2))
        return
    say(f"{name}: {'as declared' if one['as_declared'] else 'NOT as declared'}")
    for change in one["changes"]:
        say(wrapped(f"drift   {change['text']}", 2, 8))
    for gate in one["gates"]:
        say(wrapped(f"refused {gate['id']}: {gate['message']}", 2, 8))
    for failure in one["failed_checks"]:
        first, *rest = str(failure["message"]).splitlines() or [""]
        say(wrapped(f"failed  {failure['role']}: {first}", 2, 8))
        for line in rest:
            if line.strip():
                say(wrapped(line.strip(), 10))
    for answer in one["deployments"]:
        if answer["answer"]:
            text = " ".join(str(answer["answer"]).split())
            say(wrapped(f"asked   {answer['name']} answered in {answer['seconds']} s: {text}", 2, 8))
    if not one["as_declared"]:
        say(
            wrapped(
                f"do      invoke provision --host {name}; where it fails: invoke doctor --host {name}", 2, 8
            )
        )
