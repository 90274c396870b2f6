"""The verb report: what somebody who helps needs to see of boxes, in one file, without secrets and names."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from boxwright import __version__
from boxwright.cli import lab
from boxwright.cli.ansible_run import HostReport, play
from boxwright.cli.console import say, say_aside, show_json, table, wrapped
from boxwright.cli.paths import named, output_file
from boxwright.cli.privacy import anonymizer_for
from boxwright.cli.report_parts import PARTS, outline, parts
from boxwright.cli.ssh_trouble import reason, told_of
from boxwright.cli.targets import targets
from boxwright.doctor.anonymous import Anonymizer, size_of
from boxwright.errors import EXIT_BAD_INPUT, EXIT_FAILED, UserError
from boxwright.facts.parsers.masking import MASK
from boxwright.spec.places import shown_path

#: 2: the release records and the bench runs are in it, the logs have a part of their own.
FORMAT = 2


def report(
    hosts: Sequence[str],
    inventories: Sequence[str],
    *,
    every: bool = False,
    output: str = "",
    show: bool = False,
    yes: bool = False,
    as_json: bool = False,
) -> None:
    """Gather, take out who and where, show what is left, and write it once that is agreed to.

    show: print the whole file, not only what is in it. Exit status 1 where a box cannot be looked at: the
    others are in the file.
    """
    path = named(output or time.strftime("boxwright-report-%Y%m%d-%H%M%S.json"))
    if output_file("--output", path):
        raise UserError(
            "there is such a file already",
            where=str(path),
            status=EXIT_BAD_INPUT,
            ways_out=("--output another one",),
        )
    inventory, names, paths = targets(hosts, inventories, every=every)
    lab.ensure_simulated(inventory, names, as_json=as_json)
    ran = play("report.yml", names, paths, quiet=True)
    boxes = {name: box(ran.hosts.get(name, HostReport(name))) for name in names}
    anonymizer = anonymizer_for(inventory, names, boxes)
    bundle = bundled(boxes, anonymizer)
    text = json.dumps(bundle, indent=1, ensure_ascii=False) + "\n"
    if not as_json:
        if show:
            say(text)
        summary(bundle, text, anonymizer)
    if yes or (not as_json and agreed(path, text)):
        write(path, text)
        if not as_json:
            say(f"written: {shown_path(path)}")
    if as_json:
        show_json(
            {"file": str(path) if yes else None, "replaced": dict(anonymizer.replaced), "report": bundle}
        )
    if any(one["failure"] for one in boxes.values()):
        raise SystemExit(EXIT_FAILED)


def box(host: HostReport) -> dict[str, Any]:
    """What was seen of a box, by part; failure: why nothing was."""
    raw = next(iter(host.results.get("diagnosis", ())), {}).get("raw")
    if raw is None:
        return told_of({}, reason(host.name, host.failure))
    plan = next(iter(host.results.get("plan", ())), {}).get("ansible_facts", {}).get("box_plan", {})
    benches = [one for task in host.results.get("bench_runs", ()) for one in task.get("results") or [task]]
    return told_of(parts(raw, plan, benches))


def bundled(boxes: Mapping[str, Mapping[str, Any]], anonymizer: Anonymizer) -> dict[str, Any]:
    """The file's contents: all of it without what nobody else is to know."""
    return {
        "format": FORMAT,
        "boxwright": __version__,
        "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "controller": {"python": platform.python_version(), "system": platform.system()},
        "boxes": {anonymizer.host(name): anonymizer.value(one) for name, one in boxes.items()},
    }


def summary(bundle: Mapping[str, Any], text: str, anonymizer: Anonymizer) -> None:
    """What would be written, part by part, and what was taken out."""
    rows = [
        [name, part, outline(part, one[part]), f"{size_of(one[part]) / 1000:.1f}"]
        for name, one in bundle["boxes"].items()
        for part in PARTS
        if part in one
    ]
    if rows:
        table(["box", "part", "what is in it", "kB"], rows, right=(3,))
        say()
    for name, one in bundle["boxes"].items():
        if one["failure"]:
            say_aside(wrapped(f"{name}: could not be looked at: {one['failure']}", hang=2))
    counts = [f"{count} {kind}" for kind, count in anonymizer.replaced.items() if count]
    counts += [f"secrets by {MASK} in {text.count(MASK)} places"] if MASK in text else []
    say(wrapped(f"replaced by words: {', '.join(counts) or 'nothing'}. --show prints all of it.", hang=2))


def agreed(path: Path, text: str) -> bool:
    """Ask, where there is somebody to ask; otherwise nothing is written without --yes."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        say(f"not written; --yes writes it to {shown_path(path)}")
        return False
    while True:
        try:
            said = input(f"write it to {shown_path(path)}? [y/N, s shows all of it] ").strip().lower()
        except EOFError:
            return False
        if said not in ("s", "show"):
            return said in ("y", "yes")
        say(text)


def write(path: Path, text: str) -> None:
    """Write a new file that only its owner reads. Raises UserError."""
    try:
        with os.fdopen(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
        ) as file:
            file.write(text)
    except OSError as error:
        raise UserError(
            f"the report cannot be written: {error.strerror or error}",
            where=str(path),
            ways_out=("--output a place where you may write",),
        ) from error
