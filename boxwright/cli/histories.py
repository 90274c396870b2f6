"""The verb history: what ran on boxes, who ran it, what it changed, and how it ended."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from boxwright.ansible import lost_runs
from boxwright.cli import lab
from boxwright.cli.ansible_run import HostReport, play
from boxwright.cli.console import say, say_aside, show_json, table, wrapped
from boxwright.cli.recording import alive
from boxwright.cli.ssh_trouble import reason, told_of
from boxwright.cli.status_tables import NOTHING, duration
from boxwright.cli.targets import targets
from boxwright.cli.words import whole
from boxwright.errors import EXIT_FAILED
from boxwright.facts.runs import KILLED, OPEN, PastRun, past_runs

MOST = 2000


def history(
    hosts: Sequence[str],
    inventories: Sequence[str],
    *,
    every: bool = False,
    last: str = "20",
    as_json: bool = False,
) -> None:
    """Tell the last runs on each box, the newest first; exit status 1 where a box cannot be looked at."""
    most = whole("--last", last, MOST)
    inventory, names, paths = targets(hosts, inventories, every=every)
    lab.ensure_simulated(inventory, names, as_json=as_json)
    played = play("history.yml", names, paths, quiet=True)
    found = {
        name: read(
            played.hosts.get(name, HostReport(name)),
            lost_runs.kept(lost_runs.place(name, inventory.variables(name))),
        )
        for name in names
    }
    if as_json:
        show_json(
            {
                name: told_of({"runs": [one.to_json() for one in runs[:most]]}, problem)
                for name, (problem, runs) in found.items()
            }
        )
    else:
        draw({name: (problem, runs[:most]) for name, (problem, runs) in found.items()})
    if any(problem for problem, _ in found.values()):
        raise SystemExit(EXIT_FAILED)


def read(host: HostReport, late: Sequence[Mapping[str, Any]] = ()) -> tuple[str | None, list[PastRun]]:
    """Why a box could not be looked at (None: it was), and its runs, the newest first.

    late: ends of runs that the box has not had yet.
    """
    results = host.results.get("run_history")
    if not results:
        return reason(host.name, host.failure), []
    lines = [str(line) for line in results[0].get("lines") or ()]
    lines += [json.dumps(one) for one in late]
    return None, past_runs(lines, alive)[::-1]


def draw(found: Mapping[str, tuple[str | None, Sequence[PastRun]]]) -> None:
    """A row a run, and below it what a row cannot hold: what changed, and why it failed."""
    tabled = False
    for name, (problem, runs) in found.items():
        if tabled and not problem:
            say()
        tabled = tabled or not problem
        if problem:
            say_aside(wrapped(f"{name}: could not be looked at: {problem}", hang=2))
        elif not runs:
            say(f"{name}: no run is recorded there")
        else:
            table(
                ["host", "when", "verb", "by", "inventory", "took", "changes", "how it ended"],
                [row(name, one) for one in runs],
                right=(5, 6),
            )
            notes = [note for one in runs for note in remarks(one)]
            if notes:
                say()
            for note in notes:
                say(wrapped(note, 0, 2))


def row(host: str, one: PastRun) -> list[str]:
    """A run's row."""
    return [
        host,
        moment(one),
        " ".join([one.verb, *one.options]),
        one.by,
        " ".join(f"{part.commit[:8]}{'+' if part.edited else ''}" for part in one.inventory) or NOTHING,
        duration(one.seconds),
        NOTHING if one.seconds is None else str(sum(one.changed.values())),
        one.outcome,
    ]


def moment(one: PastRun) -> str:
    """When it began, as a clock here shows it."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(one.begun))


def remarks(one: PastRun) -> list[str]:
    """What a row does not tell of a run."""
    told = [f"{role} {count}" for role, count in one.changed.items()]
    told += [
        f"{step.deployment}: release {step.before or 'none'} -> {step.after}"
        if step.before != step.after
        else f"{step.deployment}: release {step.after} started anew"
        for step in one.releases
    ]
    told += [text for text in one.did if not any(step.after in text for step in one.releases)]
    if one.failure:
        where = one.failure.role or one.failure.task
        told.append(f"{one.outcome} at {where}: {one.failure.message}")
    if one.outcome == KILLED:
        told.append("killed: it began and never ended")
    if one.outcome == OPEN:
        told.append(f"it runs yet, or was killed: {one.by.partition('@')[2]} knows")
    return [f"{moment(one)}  {one.verb}: {'; '.join(told)}"] if told else []


def to_json(runs: Sequence[PastRun]) -> list[dict[str, Any]]:
    """Runs by stable keys."""
    return [one.to_json() for one in runs]
