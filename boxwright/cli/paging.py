"""The verb page: one page of HTML about a box, to look at or to send on."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from boxwright import __version__
from boxwright.bench.run import read
from boxwright.cli import lab
from boxwright.cli.ansible_run import HostReport, play
from boxwright.cli.console import say, show_json
from boxwright.cli.paths import named, output_directory, output_file
from boxwright.cli.privacy import anonymizer_for
from boxwright.cli.recording import alive
from boxwright.cli.ssh_trouble import answers, in_one_line, tell_missed, told_of
from boxwright.cli.targets import targets
from boxwright.doctor.anonymous import Anonymizer
from boxwright.doctor.glance import glance
from boxwright.doctor.host import examine
from boxwright.errors import EXIT_BAD_INPUT, EXIT_FAILED, UserError
from boxwright.facts.runs import PastRun, past_runs
from boxwright.page import page as pages
from boxwright.spec.inventory import Inventory
from boxwright.spec.places import shown_path

#: What tells a page of ours, near its beginning.
MARK, LOOKED_AT = f'content="{pages.GENERATOR}"', 1000


def page(
    hosts: Sequence[str],
    inventories: Sequence[str],
    *,
    every: bool = False,
    output: str = "",
    as_json: bool = False,
) -> None:
    """Write the page of each box. A file that is there is replaced when it is a page of ours.

    output: the file; of several boxes the directory. Exit status 1 where a box cannot be looked at.
    """
    inventory, names, paths = targets(hosts, inventories, every=every)
    alone = len(names) == 1 and not every
    files = {name: named(output) / f"{name}.html" for name in names}
    if alone and output:
        files = {names[0]: named(output)}
    if not alone:
        output_directory("--output", named(output))
    for path in files.values():
        if alone or path.parent.is_dir():
            _refuse(path)
    lab.ensure_simulated(inventory, names, as_json=as_json)
    played = play("page.yml", names, paths, quiet=True)
    _, missed = answers(played.hosts, names, "box_status", inventory)
    told: dict[str, dict[str, Any]] = {}
    for name in names:
        if name in missed:
            told[name] = told_of({"file": None, "verdict": None}, in_one_line(missed[name]))
            continue
        seen = seen_of(name, played.hosts[name], inventory)
        write(files[name], pages.page(seen))
        told[name] = told_of({"file": str(files[name]), "verdict": seen.report.verdict})
        if not as_json:
            say(f"written: {shown_path(files[name])}")
    if as_json:
        show_json(told)
    else:
        tell_missed(missed, alone=len(names) == 1)
    if missed:
        raise SystemExit(EXIT_FAILED)


def seen_of(name: str, host: HostReport, inventory: Inventory) -> pages.Seen:
    """What was seen of a box, without what nobody else is to know.

    It is taken out of the values, before anything is made of them. The box itself keeps the name that it was
    asked for by.
    """
    status = host.results["box_status"][0]["raw"]
    raw = next(iter(host.results.get("diagnosis", ())), {}).get("raw") or {}
    plan = next(iter(host.results.get("plan", ())), {}).get("ansible_facts", {}).get("box_plan") or None
    lines = next(iter(host.results.get("run_history", ())), {}).get("lines") or []
    runs = past_runs([str(line) for line in lines], alive)[::-1]
    anonymous = anonymizer_for(
        inventory,
        [name],
        {"status": status, "raw": raw, "plan": plan},
        users=[one.by.partition("@")[0] for one in runs],
        hosts=[one.by.partition("@")[2] for one in runs],
        keep=[name] if "." not in name else [],
    )
    without = anonymous.value
    _, report = examine(without(raw))
    return pages.Seen(
        name=name,
        made=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        version=__version__,
        glance=glance(without(status)),
        plan=without(plan),
        report=report,
        benches=[read(without(one)) for one in _kept(host)],
        runs=[_without(one, anonymous) for one in runs],
    )


def _without(one: PastRun, anonymous: Anonymizer) -> PastRun:
    """A run without who and where it was begun."""
    failure = one.failure
    return replace(
        one,
        by=anonymous.text(one.by),
        options=tuple(map(anonymous.text, one.options)),
        did=tuple(map(anonymous.text, one.did)),
        failure=failure
        and replace(failure, task=anonymous.text(failure.task), message=anonymous.text(failure.message)),
    )


def _kept(host: HostReport) -> Iterator[Mapping[str, Any]]:
    """The last run of each deployment that has one."""
    for task in host.results.get("bench_runs", ()):
        for one in task.get("results") or [task]:
            yield from ((one.get("found") or {}).get("last") or ())[:1]


def _refuse(path: Path) -> None:
    """Before the box is asked: whether the page can go there. Raises UserError."""
    if not output_file("--output", path):
        return
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            beginning = file.read(LOOKED_AT)
    except OSError as error:
        raise UserError(
            f"it cannot be read, whether it is a page of a box: {error.strerror or error}",
            where=str(path),
            status=EXIT_BAD_INPUT,
            ways_out=("--output another one",),
        ) from error
    if MARK not in beginning:
        raise UserError(
            "there is such a file already, and it is no page of a box",
            where=str(path),
            status=EXIT_BAD_INPUT,
            ways_out=("--output another one",),
        )


def write(path: Path, text: str) -> None:
    """Write the page whole, or leave what was there. Raises UserError."""
    new = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(text, encoding="utf-8")
        new.replace(path)
    except OSError as error:
        raise UserError(
            f"the page cannot be written: {error.strerror or error}",
            where=str(path),
            ways_out=("--output a place where you may write",),
        ) from error
