"""The verb logs: what engines wrote, without secrets; once, or as it comes."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from boxwright.cli import lab
from boxwright.cli.ansible_run import HostReport, play
from boxwright.cli.console import say, say_aside, show_json, wrapped
from boxwright.cli.deployments import hosts_with
from boxwright.cli.ssh_trouble import reason, told_of
from boxwright.cli.targets import targets
from boxwright.errors import EXIT_BAD_INPUT, EXIT_FAILED, UserError

#: Most lines of one journal that are fetched at once.
MOST_LINES = 100_000
#: Seconds between two looks of --follow.
FOLLOW_S = 2
#: What --since takes: so long ago, or a day and a time.
SINCE = re.compile(r"-?\d{1,6}\s?(?:s|min|m|h|d)|\d{4}-\d\d-\d\d(?: \d\d:\d\d(?::\d\d)?)?")


def logs(
    hosts: Sequence[str],
    inventories: Sequence[str],
    *,
    every: bool = False,
    deployment: str | None = None,
    lines: str = "200",
    since: str = "",
    follow: bool = False,
    as_json: bool = False,
) -> None:
    """Print what the engines of the boxes wrote; exit status 1 where a box cannot be read."""
    if follow and as_json:
        raise UserError(
            "--follow has no end, and JSON has one", status=EXIT_BAD_INPUT, ways_out=("leave one out",)
        )
    variables: dict[str, Any] = {
        "logs_lines": count(lines),
        "logs_since": moment(since),
        "logs_deployments": [deployment] if deployment else [],
        "logs_cursors": {},
    }
    inventory, names, paths = targets(hosts, inventories, every=every)
    names = hosts_with(inventory, names, deployment, every=every)
    lab.ensure_simulated(inventory, names, as_json=as_json)
    while True:
        report = play("logs.yml", names, paths, quiet=True, variables=variables)
        found = {name: read(report.hosts.get(name, HostReport(name))) for name in names}
        if as_json:
            show_json(found)
        else:
            for name, one in found.items():
                draw(name, one, labelled=len(names) > 1)
        if not follow:
            break
        # A box that was not reached this time goes on where it was read to.
        before = variables["logs_cursors"]
        variables["logs_cursors"] = {
            name: {**before.get(name, {}), **cursors(one)} for name, one in found.items()
        }
        time.sleep(FOLLOW_S)
    if any(one["failure"] or any(j["problem"] for j in one["journals"]) for one in found.values()):
        raise SystemExit(EXIT_FAILED)


def count(text: str) -> int:
    """A number of lines. Raises UserError for anything else."""
    if not re.fullmatch(r"[1-9]\d{0,5}", text) or int(text) > MOST_LINES:
        raise UserError(
            f"--lines {text} is no number of lines",
            status=EXIT_BAD_INPUT,
            ways_out=(f"give one of 1 to {MOST_LINES}",),
        )
    return int(text)


def moment(text: str) -> str:
    """What journalctl takes for --since: `-10m` for `10m`; empty for none. Raises UserError."""
    text = text.strip()
    if text and not SINCE.fullmatch(text):
        raise UserError(
            f"--since {text} is no time",
            status=EXIT_BAD_INPUT,
            ways_out=("so long ago: 30s, 10m, 2h, 1d", "since then: 2026-11-30 or '2026-11-30 06:00'"),
        )
    return f"-{text}" if re.fullmatch(r"\d+\s?(?:s|min|m|h|d)", text) else text


def read(host: HostReport) -> dict[str, Any]:
    """A box's journals by stable keys; failure: why it has none."""
    results = host.results.get("engine_journal")
    if not results:
        return told_of({"journals": []}, reason(host.name, host.failure))
    return told_of({"journals": results[0]["journals"]})


def cursors(one: Mapping[str, Any]) -> dict[str, str]:
    """Deployment -> where its journal was read to."""
    return {journal["name"]: journal["cursor"] for journal in one["journals"] if journal["cursor"]}


def draw(name: str, one: Mapping[str, Any], *, labelled: bool) -> None:
    """Print the lines as they are; of several journals each with whose it is."""
    if one["failure"]:
        say_aside(wrapped(f"{name}: could not be read: {one['failure']}", hang=2))
    for journal in one["journals"]:
        label = f"{name} {journal['name']}: " if labelled or len(one["journals"]) > 1 else ""
        if journal["problem"]:
            say_aside(wrapped(f"{name}: {journal['name']}: {journal['problem']}", hang=2))
        for line in journal["lines"]:
            say(label + line)
