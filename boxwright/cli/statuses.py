"""The verb status: how boxes fare at this moment, a row a deployment."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from boxwright.cli import lab
from boxwright.cli.ansible_run import HostReport, play
from boxwright.cli.console import say, show_json, wrapped
from boxwright.cli.ssh_trouble import in_one_line, reason, told_of
from boxwright.cli.status_tables import draw
from boxwright.cli.targets import targets
from boxwright.doctor.glance import Glance, glance
from boxwright.errors import EXIT_BAD_INPUT, EXIT_FAILED, UserError

#: Seconds between two looks of --watch.
WATCH_S = 5
#: Seconds that a box has to let a connection stand: one that is off shall not hold up a glance at the others.
CONNECTING_S = 8
CLEAR = "\033[H\033[2J"
#: States in which a deployment answers, or is about to.
WELL = ("serving", "loading", "drifted")
#: What is known of each box: why it could not be looked at (None: it was), and how it fares.
Found = Mapping[str, tuple[str | None, Glance | None]]


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

    def look() -> Found:
        report = play("status.yml", names, paths, quiet=True, connecting_s=CONNECTING_S)
        return {name: seen(report.hosts.get(name, HostReport(name))) for name in names}

    if watch:
        watching(look, time.sleep, lambda: time.strftime("%H:%M:%S"))
    found = look()
    if as_json:
        show_json({name: to_json(*one) for name, one in found.items()})
    else:
        draw(found)
    if any(problem or not well(one) for problem, one in found.values()):
        raise SystemExit(EXIT_FAILED)


def watching(
    look: Callable[[], Found],
    pause: Callable[[float], None],
    clock: Callable[[], str],
) -> NoReturn:
    """Look and draw in place until Ctrl-C, which is the only way out once the first look succeeded.

    What keeps a later look from being made (an inventory that is being edited) is told below what was seen
    last. Raises KeyboardInterrupt, and the UserError of the first look.
    """
    found, when, problem = look(), clock(), None
    while True:
        sys.stdout.write(CLEAR)
        say(f"{when}   every {WATCH_S} s; Ctrl-C ends it")
        draw(found)
        if problem:
            say()
            say(wrapped(f"{clock()}: not looked at again: {problem}", hang=2))
        pause(WATCH_S)
        try:
            found, when, problem = look(), clock(), None
        except UserError as error:
            problem = in_one_line(error)


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
        and all(deployment.state in WELL for deployment in one.deployments)
    )


def to_json(problem: str | None, one: Glance | None) -> dict[str, Any]:
    """By stable keys."""
    return told_of(one.to_json() if one else {}, problem)
