"""The verb status: how boxes fare at this moment, a row a deployment."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from boxwright.cli import lab
from boxwright.cli.ansible_run import HostReport, play
from boxwright.cli.console import say, show_json, table, wrapped
from boxwright.cli.ssh_trouble import reason
from boxwright.cli.targets import targets
from boxwright.doctor.glance import TEXT, CardNow, DeploymentNow, Glance, glance
from boxwright.errors import EXIT_BAD_INPUT, EXIT_FAILED, UserError

#: Seconds between two looks of --watch.
WATCH_S = 5
CLEAR = "\033[H\033[2J"
NOTHING = "-"
#: What differs on a box, told one by one; more are counted.
MOST_DRIFTS = 3


def status(
    hosts: Sequence[str],
    inventories: Sequence[str],
    *,
    every: bool = False,
    watch: bool = False,
    as_json: bool = False,
) -> None:
    """Show how the boxes fare; exit status 1 when one cannot be looked at or a deployment does not serve."""
    if watch and (as_json or not sys.stdout.isatty()):
        raise UserError(
            "--watch refreshes a terminal, and this is none",
            status=EXIT_BAD_INPUT,
            ways_out=("leave --watch out, and call again",),
        )
    inventory, names, paths = targets(hosts, inventories, every=every)
    lab.ensure_simulated(inventory, names, as_json=as_json)
    while True:
        report = play("status.yml", names, paths, quiet=True)
        found = {name: seen(report.hosts.get(name, HostReport(name))) for name in names}
        if as_json:
            show_json({name: to_json(*one) for name, one in found.items()})
        else:
            if watch:
                sys.stdout.write(CLEAR)
                say(time.strftime("%H:%M:%S") + f"   every {WATCH_S} s; Ctrl-C ends it")
            draw(found)
        if not watch:
            break
        time.sleep(WATCH_S)
    if any(problem or not well(one) for problem, one in found.values()):
        raise SystemExit(EXIT_FAILED)


def seen(host: HostReport) -> tuple[str | None, Glance | None]:
    """Why a box could not be looked at (None: it was), and how it fares."""
    results = host.results.get("box_status")
    if not results:
        return reason(host.name, host.failure), None
    return None, glance(results[0]["raw"])


def well(one: Glance | None) -> bool:
    """Whether every card answers and every deployment serves, or is about to."""
    return (
        one is not None
        and not one.cards_problem
        and all(deployment.state in ("serving", "starting") for deployment in one.deployments)
    )


def to_json(problem: str | None, one: Glance | None) -> dict[str, Any]:
    """By stable keys."""
    return {"unreachable": problem, **(one.to_json() if one else {})}


def draw(found: Mapping[str, tuple[str | None, Glance | None]]) -> None:
    """Two tables, deployments and cards, and below them what is to be known of single boxes."""
    rows = [row(name, one) for name, (_, box) in found.items() if box for one in box.deployments]
    if rows:
        table(
            ["host", "deployment", "state", "release", "context", "run+wait", "tok/s", "KV", "drafts", "up"],
            rows,
            right=(4, 5, 6, 7, 8, 9),
        )
    cards = [card(name, one) for name, (_, box) in found.items() if box for one in box.cards]
    if cards:
        if rows:
            say()
        table(
            ["host", "card", "name", "driver", "°C", "W", "of W", "MHz", "MiB", "of MiB", "busy"],
            cards,
            right=(1, 4, 5, 6, 7, 8, 9, 10),
        )
    notes = [note for name, one in found.items() for note in remarks(name, *one)]
    if notes and (rows or cards):
        say()
    for note in notes:
        say(wrapped(note, hang=2))


def row(host: str, one: DeploymentNow) -> list[str]:
    """A deployment's row."""
    load = NOTHING if one.running is None else f"{one.running}+{one.waiting or 0}"
    return [
        host,
        one.name,
        one.state if one.serves == TEXT else f"{one.state} {one.serves}",
        one.release or NOTHING,
        NOTHING if one.context is None else f"{one.context:,}",
        load,
        NOTHING if one.tokens_per_s is None else f"{one.tokens_per_s:.1f}",
        share(one.kv_usage),
        share(one.acceptance),
        duration(one.uptime_s),
    ]


def card(host: str, one: CardNow) -> list[str]:
    """A card's row."""
    numbers = (
        one.temperature,
        one.power and round(one.power),
        one.power_limit and round(one.power_limit),
        one.clock,
        one.memory_used,
        one.memory_total,
    )
    name = (one.name or NOTHING).removeprefix("NVIDIA ").removeprefix("GeForce ")
    return [
        host,
        str(one.index),
        name,
        one.driver or NOTHING,
        *(NOTHING if number is None else str(number) for number in numbers),
        NOTHING if one.utilization is None else f"{one.utilization} %",
    ]


def remarks(host: str, problem: str | None, one: Glance | None) -> list[str]:
    """What a table cannot say of a box."""
    if one is None:
        return [f"{host}: could not be looked at: {problem}"]
    found = []
    if one.cards_problem:
        found.append(
            f"{host}: its cards do not all answer ({one.cards_problem}); invoke doctor --host {host}"
        )
    found += [
        f"{host}: {deployment.name}: {deployment.state}: {deployment.what or 'its unit does not run'}"
        for deployment in one.deployments
        if deployment.state != "serving"
    ]
    if one.drifted is None:
        found.append(f"{host}: no whole run of provision is recorded there")
    elif one.drifted:
        more = len(one.drifted) - MOST_DRIFTS
        told = "; ".join(one.drifted[:MOST_DRIFTS]) + (f"; and {more} more" if more > 0 else "")
        found.append(f"{host}: drifted: {told}; invoke provision --host {host} mends it")
    return found


def share(value: float | None) -> str:
    """A share as a percentage."""
    return NOTHING if value is None else f"{value:.0%}"


def duration(seconds: float | None) -> str:
    """Seconds as `42 s`, `7 min`, `5 h`, `12 d`: the largest unit that has two of itself."""
    if seconds is None:
        return NOTHING
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f} {unit}"
    return f"{seconds:.0f} s"
