"""The verbs monitor and dashboards: boxes seen over time, and how Grafana or Perses shows it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from boxwright.cli import lab
from boxwright.cli.ansible_run import HostReport, failed, play
from boxwright.cli.console import say, say_aside, show_json
from boxwright.cli.exporting import save
from boxwright.cli.paths import named, output_directory
from boxwright.cli.recording import recorded
from boxwright.cli.ssh_trouble import explain, tell_end
from boxwright.cli.targets import targets
from boxwright.cli.turns import addresses, turn
from boxwright.cli.validating import refuse_problems
from boxwright.errors import EXIT_BAD_INPUT, EXIT_FAILED, UserError
from boxwright.monitoring import grafana, perses
from boxwright.monitoring.dashboards import Dashboard
from boxwright.monitoring.dashboards import dashboards as all_dashboards
from boxwright.monitoring.server import PORT
from boxwright.spec.places import shown_path
from boxwright.texts import printable

FORMATS: Mapping[str, Callable[[Dashboard], dict[str, Any]]] = {
    "grafana": grafana.dashboard,
    "perses": perses.dashboard,
}


def monitor(
    hosts: Sequence[str],
    inventories: Sequence[str],
    *,
    every: bool = False,
    check: bool = False,
    as_json: bool = False,
) -> None:
    """Bring each box's monitoring to what is declared; exit status 1 where that failed."""
    inventory, names, paths = targets(hosts, inventories, every=every)
    refuse_problems(inventory, names)
    lab.ensure_simulated(inventory, names, as_json=as_json)
    with turn(addresses(names, inventory.variables), say_aside):
        report = play(
            "monitor.yml",
            names,
            paths,
            check=check,
            quiet=as_json,
            variables=recorded("monitor", paths),
        )
    told = {name: outcome(report.hosts.get(name), inventory.variables(name)) for name in names}
    for name in names:
        explain(name, told[name]["failure"], inventory)
    if as_json:
        show_json({"hosts": told})
    else:
        for name in names:
            _tell(name, told[name], check=check)
    if failed(report, names):
        raise SystemExit(EXIT_FAILED)


def outcome(host: HostReport | None, declared: Mapping[str, Any]) -> dict[str, Any]:
    """What became of one box, by stable keys. watched: it has exporters. prometheus: its address, or None."""
    bind = declared.get("monitoring_server_bind") or "127.0.0.1"
    found = {
        "watched": bool(declared.get("monitoring_exporters")),
        "prometheus": f"http://{bind}:{PORT}" if declared.get("monitoring_server") else None,
    }
    if host is None:
        return {
            **found,
            "changed": False,
            "failure": {"kind": "failed", "message": "the host was not visited"},
        }
    return {
        **found,
        "changed": host.changed > 0,
        "failure": dict(host.failure) if host.failure else None,
    }


def _tell(name: str, found: Mapping[str, Any], *, check: bool) -> None:
    if found["failure"]:
        tell_end(name, found["failure"])
        return
    parts = [
        *(["is watched"] if found["watched"] else []),
        *([f"watches at {found['prometheus']}"] if found["prometheus"] else []),
    ]
    what = " and ".join(parts) or "declares no monitoring, and has none"
    if check:
        changes = "something would change" if found["changed"] else "nothing would change"
    else:
        changes = "brought there now" if found["changed"] else "nothing had to change"
    say(f"{name}: {what} ({changes})")


def dashboards(*, format_: str, output: str, as_json: bool = False) -> None:
    """Write each dashboard as a file of the program's; none that is there is replaced."""
    if format_ not in FORMATS:
        raise UserError(
            f'--format: there is none named "{printable(format_)}"' if format_ else "which format?",
            status=EXIT_BAD_INPUT,
            ways_out=("--format one of: " + ", ".join(FORMATS),),
        )
    made = {one.name: FORMATS[format_](one) for one in all_dashboards()}
    if output:
        output_directory("--output", named(output))
        texts = {f"{name}.json": json.dumps(one, indent=1) + "\n" for name, one in made.items()}
        for path in save(named(output), texts):
            (say_aside if as_json else say)(f"written: {shown_path(path)}")
    elif not as_json:
        raise UserError(
            "where to? there are several files",
            status=EXIT_BAD_INPUT,
            ways_out=("--output a directory", "--json"),
        )
    if as_json:
        show_json({"format": format_, "dashboards": made})
