"""The verb doctor: what is wrong with a box, or with a log that somebody pasted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from boxwright.cli import console, lab, log_file
from boxwright.cli.ansible_run import HostReport, play
from boxwright.cli.console import say, show_json, table
from boxwright.cli.drawing import draw_finding
from boxwright.cli.planning import locate
from boxwright.cli.ssh_trouble import told_of, trouble
from boxwright.cli.targets import targets
from boxwright.doctor import Log, Report, diagnose
from boxwright.doctor.host import Deployment, examine
from boxwright.doctor.log import MOST_FINDS
from boxwright.doctor.telling import told, verdict, wrapped
from boxwright.errors import EXIT_BAD_INPUT, EXIT_FAILED, UserError
from boxwright.spec.inventory import Inventory

#: Of a log without a line that anything is known about: it may be fine, or another program's, or too short.
UNKNOWN_ALL = (
    "no line of it is known: where something is wrong, give the whole log from the engine's start on, with "
    "what it wrote to standard error (docker logs NAME 2>&1, or journalctl -t boxwright-NAME)"
)


def doctor(
    hosts: Sequence[str],
    inventories: Sequence[str],
    *,
    every: bool = False,
    log: str | None = None,
    as_json: bool = False,
) -> None:
    """Diagnose a log, or hosts; exit status 1 when something fatal is found."""
    if log is not None and (hosts or every):
        raise UserError(
            "--log is read without any host", status=EXIT_BAD_INPUT, ways_out=("leave --host out",)
        )
    fatal = (
        _log(log, as_json=as_json)
        if log is not None
        else _hosts(hosts, inventories, every=every, as_json=as_json)
    )
    if fatal:
        raise SystemExit(EXIT_FAILED)


def _log(word: str, *, as_json: bool) -> bool:
    name = log_file.name_of(word)
    report = diagnose([Log(name, log_file.read(word))])
    if as_json:
        show_json({"log": word, **report.to_json()})
    else:
        say(f"{name}: {verdict(report)}")
        draw(report)
        if report == Report():
            say(console.wrapped(UNKNOWN_ALL, 2))
    return report.verdict == "fatal"


def _hosts(hosts: Sequence[str], inventories: Sequence[str], *, every: bool, as_json: bool) -> bool:
    inventory, names, paths = targets(hosts, inventories, every=every)
    lab.ensure_simulated(inventory, names, as_json=as_json)
    report = play("doctor.yml", names, paths, quiet=True)
    found = {name: summary(report.hosts.get(name), inventory) for name in names}
    if as_json:
        show_json({name: _json(*one) for name, one in found.items()})
    else:
        for number, (name, one) in enumerate(found.items()):
            if number:
                say()
            _draw_host(name, *one)
    return any(problem or report.verdict == "fatal" for problem, _, report, _ in found.values())


Summary = tuple[str | None, list[Deployment], Report, Mapping[str, Any]]


def summary(host: HostReport | None, inventory: Inventory) -> Summary:
    """Why a host could not be looked at (None: it was), its deployments, its report, its plan."""
    if host is None or not host.results.get("diagnosis"):
        return _unseen(host, inventory), [], Report(), {}
    deployments, report = examine(host.results["diagnosis"][0]["raw"])
    report = report.on(host.name)
    plan = dict(next(iter(host.results.get("plan", ())), {}).get("ansible_facts", {}).get("box_plan", {}))
    if plan:
        locate(host.name, plan, inventory)
    return None, deployments, report, plan


def _unseen(host: HostReport | None, inventory: Inventory) -> str:
    """Why a host could not be looked at, and the ways out."""
    known: dict[str, object] = {}
    if host:
        # A mistake in the inventory is no reason not to tell why the host cannot be reached.
        with suppress(UserError):
            known = inventory.variables(host.name)
    error = trouble(host.name if host else "", host.failure if host else None, variables=known)
    told = f"{error.what}: {error.why}" if error.why else error.what
    return told + (f". To do: {'; or '.join(error.ways_out)}" if error.ways_out else "")


def _json(
    problem: str | None, deployments: Sequence[Deployment], report: Report, plan: Mapping[str, Any]
) -> dict[str, Any]:
    value = {
        "deployments": [one.to_json() for one in deployments],
        **(report.to_json() if problem is None else {"verdict": None}),
        "plan": {"gates": plan.get("gates", []), "advice": plan.get("advice", [])} if plan else None,
    }
    return told_of(value, problem)


def _draw_host(
    name: str,
    problem: str | None,
    deployments: Sequence[Deployment],
    report: Report,
    plan: Mapping[str, Any],
) -> None:
    if problem is not None:
        say(f"{name}: could not be looked at")
        for line in wrapped(problem, "  "):
            say(line)
        return
    say(f"{name}: {verdict(report)}")
    for one in deployments:
        say(f"  {one.name}: {one.state}" + (f", {one.what}" if one.what else ""))
    draw(report)
    for kind in ("gates", "advice"):
        for finding in plan.get(kind, ()):
            say()
            draw_finding(finding, refuses=kind == "gates")


def times(count: int) -> str:
    """How often something was seen; beyond a bound it is not counted any further."""
    return f"{count:,}" + ("+" if count >= MOST_FINDS else "")


def draw(report: Report) -> None:
    """Print what was found: the likeliest cause first, what follows from it, and what is to be left alone."""
    for one in report.causes:
        say()
        often = f"   {times(one.count)} times" if one.count > 1 else ""
        say(f"  {'earlier' if one.past else one.severity:<8}{one.id}{often}")
        for line in told(one, "    "):
            say(line)
        if one.link:
            say(f"      more  {one.link}")
    if report.consequences:
        say()
        say("  follows from it")
        for one in report.consequences:
            say(f"    {one.id}" + (f" (from {one.because})" if one.because else ""))
    if report.others:
        say()
        say("  of other programs, none of the engine's")
        for one in report.others:
            seen = one.evidence[0]
            said = f"{one.program}, line {seen.line}: {seen.text}"
            for line in wrapped(said, "    ", "      ", broken=True):
                say(line)
    if report.harmless:
        say()
        say("  harmless, to be left alone")
        table(
            ["    what", "times", "why"],
            [["    " + one.id, times(one.count), one.cause] for one in report.harmless],
        )
