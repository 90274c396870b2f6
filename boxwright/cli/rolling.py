"""Boxes behind a gateway, changed one after another: none while it gets requests, and one that fails ends it.

What is done to a box is the caller's. Here is who has to wait for whom, that gateways send a box nothing
meanwhile, that it is back before the next one goes, and what is told of those that had no turn.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from boxwright.cli import gateways, run_logs
from boxwright.cli.ansible_run import HostReport, RunReport
from boxwright.cli.gateways import STAYS_OUT, Fleet, Tell, failure_of
from boxwright.cli.run_summary import NOT_BEGUN
from boxwright.planner.fleet import lanes

#: Changes boxes; their reports by name.
Work = Callable[[Sequence[str]], Mapping[str, HostReport]]


def provision(
    fleet: Fleet,
    names: Sequence[str],
    run: Callable[[Sequence[str], Mapping[str, Any]], RunReport],
    tell: Tell,
) -> RunReport:
    """All hosts at once, and then one after another those behind a gateway for which there is work.

    run: the playbook on hosts, with variables. At first it makes every plan, does what disturbs no requests,
    and leaves out those that serve and have to wait. A gateway of this run is changed when they are done.
    """
    boxes = [name for name in names if name in fleet.gateways]
    first = run(names, {"roll_boxes": boxes, "roll_gateways": list(fleet.all_gateways),
                        "roll_models": {box: list(fleet.models[box]) for box in boxes}})  # fmt: skip
    waiting = [box for box in boxes if _waits(first.hosts.get(box))]
    if not waiting:
        return first
    unlucky = [box for box in boxes if box not in first.hosts or first.hosts[box].failure]
    found = dict(first.hosts)
    later = in_turns(fleet, waiting, lambda some: run(some, {}).hosts, tell, unlucky=unlucky, among=boxes)
    found |= {box: merged(found[box], one) for box, one in later.items()}
    failed = [*unlucky, *_unlucky(later)]
    due = []
    for one in names:
        if one not in fleet.all_gateways or one in waiting or one not in found or found[one].failure:
            continue
        mine = [box for box in failed if one in fleet.gateways[box]]
        if mine:
            found[one] = merged(found[one], HostReport(one, failure=_no_turn(one, mine)))
        else:
            due.append(one)
    if due:
        found |= {one: merged(found[one], end) for one, end in run(due, {}).hosts.items()}
    return replace(first, hosts=found)


def change(fleet: Fleet, names: Sequence[str], work: Work, tell: Tell) -> dict[str, HostReport]:
    """Do the work on all hosts at once that are behind no gateway, and on the others in turns."""
    free = [name for name in names if name not in fleet.gateways]
    found = dict(work(free)) if free else {}
    return found | in_turns(fleet, [name for name in names if name in fleet.gateways], work, tell)


def in_turns(
    fleet: Fleet,
    names: Sequence[str],
    work: Work,
    tell: Tell,
    *,
    unlucky: Sequence[str] = (),
    among: Sequence[str] = (),
) -> dict[str, HostReport]:
    """Do the work on each box while its gateways send it nothing; those of different gateways go at once.

    unlucky: boxes that have failed before; those behind a gateway of theirs have no turn. among: all boxes of
    the run that are behind gateways, where that is more than names.
    """
    found: dict[str, HostReport] = {}
    queues = []
    for lane in lanes(list(among or names), fleet.gateways):
        queue = [box for box in names if box in lane]
        failed = [box for box in unlucky if box in lane]
        if failed:
            found |= {box: HostReport(box, failure=_no_turn(box, failed)) for box in queue}
        else:
            queues.append(queue)
    while queues := [queue for queue in queues if queue]:
        turn = [queue.pop(0) for queue in queues]
        found |= _turn(fleet, turn, work, tell)
        for box, queue in zip(turn, queues, strict=True):
            if found[box].failure:
                found |= {one: HostReport(one, failure=_no_turn(one, [box])) for one in queue}
                queue.clear()
    return found


def _turn(fleet: Fleet, boxes: Sequence[str], work: Work, tell: Tell) -> dict[str, HostReport]:
    """One box of each lane: drained, changed, back in use. A failed one is back as soon as it answers."""
    refused, out = gateways.drain(fleet, boxes, tell)
    going = [box for box in boxes if box not in refused]
    done: Mapping[str, HostReport] = {}
    try:
        done = work(going) if going else {}
    finally:
        # Also where somebody stops the run: the gateway's own check keeps out what does not answer.
        unwell = [box for box in boxes if box not in done or _unwell(done[box])]
        if unwell:
            gateways.offer(fleet, unwell, tell)
    found = {box: HostReport(box, failure=failure) for box, failure in refused.items()}
    found |= {
        box: done.get(box, HostReport(box, failure=failure_of("the host was not visited"))) for box in going
    }
    well = [box for box in going if not found[box].failure]
    if well:
        found |= {
            box: replace(found[box], failure=failure)
            for box, failure in gateways.give_back(fleet, well, out, tell)
        }
    return found


def _unwell(report: HostReport) -> bool:
    """Whether it may serve again, and get requests then, though the work on it failed."""
    return bool(report.failure) and (report.failure or {}).get("kind") != STAYS_OUT


def _no_turn(name: str, failed: Sequence[str]) -> dict[str, Any]:
    """Of a host that had no turn, because others failed."""
    call = run_logs.call
    again = [
        "./invoke",
        call.verb,
        *(word for one in (*failed, name) for word in ("--host", one)),
        *call.words,
    ]
    return {
        **failure_of(f"the roll ended at {', '.join(failed)}"),
        "role": None,
        "action": None,
        "kind": NOT_BEGUN,
        "left": [],
        "next": [f"once that is mended: {shlex.join(again)}"],
    }


def _unlucky(found: Mapping[str, HostReport]) -> list[str]:
    """Those that ended a roll."""
    failures = {name: one.failure for name, one in found.items() if one.failure}
    return [name for name, failure in failures.items() if failure.get("kind") != NOT_BEGUN]


def _plan(report: HostReport) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(iter(report.results.get("plan", ())), {}).get("ansible_facts", {})
    return found.get("box_plan") or {}


def _waits(report: HostReport | None) -> bool:
    """Whether a box serves and is to be changed: playbooks/provision.yml leaves it out by the same condition.

    One that serves nothing yet takes nothing away from anybody.
    """
    plan = _plan(report) if report and not report.failure else {}
    releases = (plan.get("facts") or {}).get("releases") or ()
    return bool(plan.get("visits")) and any(one.get("current") for one in releases)


def merged(first: HostReport, later: HostReport) -> HostReport:
    """Two runs on one host as one; it ended as the later one did."""
    names = dict.fromkeys((*first.results, *later.results))
    results = {name: (*first.results.get(name, ()), *later.results.get(name, ())) for name in names}
    failure = later.failure
    if failure and failure.get("kind") == NOT_BEGUN:
        said = (
            "what takes long was made ready; what serves was not touched"
            if first.changed
            else "nothing was changed: it is as before"
        )
        failure = {**failure, "left": [said]}
    return HostReport(
        first.name,
        first.changed + later.changed,
        first.tasks + later.tasks,
        (*first.changed_tasks, *later.changed_tasks),
        (*first.roles, *later.roles),
        results,
        failure,
        (*first.failures, *later.failures),
    )
