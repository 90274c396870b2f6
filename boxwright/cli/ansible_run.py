"""Running a playbook on hosts that were looked up before, and reading what it did."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from boxwright.ansible import run_log
from boxwright.ansible.runs import VARIABLE
from boxwright.cli import become, run_logs
from boxwright.cli.aftermath import aftermath
from boxwright.cli.interrupts import interrupts
from boxwright.cli.overheard import STDERR, overheard
from boxwright.cli.tunnel import tunnels
from boxwright.errors import UserError

#: Variables of Ansible's that name files with secrets.
SECRET_FILES = ("ANSIBLE_VAULT_PASSWORD_FILE", "ANSIBLE_VAULT_IDENTITY_LIST", become.VARIABLE)
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class HostReport:
    """What a run did on one host. changed: number of tasks; results: kept module results by name.

    failure: the last one; failures: each of them, also those that the run went on after.
    """

    name: str
    changed: int = 0
    tasks: int = 0
    changed_tasks: Sequence[Mapping[str, Any]] = ()
    roles: Sequence[Mapping[str, Any]] = ()
    results: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    failure: Mapping[str, Any] | None = None
    failures: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class RunReport:
    """A whole run. seconds: wall time of the playbook."""

    status: int
    seconds: float
    hosts: Mapping[str, HostReport]


def environment(report: Path, connecting_s: int | None = None) -> dict[str, str]:
    """The environment of ansible-playbook: the project's configuration, whatever the directory.

    connecting_s: see play.
    """
    hasty = {"ANSIBLE_TIMEOUT": str(connecting_s), "ANSIBLE_SSH_RETRIES": "0"} if connecting_s else {}
    secrets = {
        name: ",".join(_absolute(entry) for entry in os.environ[name].split(","))
        for name in SECRET_FILES
        if os.environ.get(name)
    }
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return dict(
        os.environ,
        PATH=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '/usr/bin:/bin')}",
        ANSIBLE_CONFIG=str(ROOT / "ansible.cfg"),
        ANSIBLE_STDOUT_CALLBACK="boxwright",
        ANSIBLE_NOCOLOR="1",
        ANSIBLE_DEPRECATION_WARNINGS="0",
        ANSIBLE_LOCALHOST_WARNING="0",
        BOXWRIGHT_COLOUR="1" if colour else "0",
        BOXWRIGHT_REPORT=str(report),
        **hasty,
        **secrets,
    )


def _terminal() -> str:
    """The device that a person looks at, "" where the output goes elsewhere."""
    try:
        return os.ttyname(1) if os.environ.get("TERM", "dumb") != "dumb" else ""
    except OSError:
        return ""


def _absolute(secret: str) -> str:
    """`label@file` or `file` that is found from any directory: a playbook runs in the project's own."""
    label, at, file = secret.strip().rpartition("@")
    if file in ("prompt", "prompt_ask_vault_pass"):
        return secret
    return f"{label}{at}{Path(file).expanduser().absolute()}"


def play(
    playbook: str,
    hosts: Sequence[str],
    inventories: Sequence[Path],
    *,
    check: bool = False,
    quiet: bool = False,
    variables: Mapping[str, Any] | None = None,
    connecting_s: int | None = None,
) -> RunReport:
    """Run playbooks/`playbook` on `hosts`; its lines go to the terminal unless `quiet`.

    connecting_s: seconds that a connection may take to stand, tried once; None: as ansible.cfg has it.
    All that Ansible says goes to this call's log, and with --verbose to the terminal too: beside what a
    quiet verb prints, on standard error. Raises UserError when Ansible itself could not run (a host that
    fails is in the report).
    """
    log, call = run_logs.opened(), run_logs.call
    with tempfile.TemporaryDirectory(prefix="boxwright-") as scratch:
        report = Path(scratch) / "report.json"
        argv = ["ansible-playbook", str(ROOT / "playbooks" / playbook), "--limit", ",".join(hosts)]
        for inventory in inventories:
            argv += ["--inventory", str(inventory)]
        if check:
            argv += ["--check", "--diff"]
        if variables:
            path = Path(scratch) / "variables.json"
            path.write_text(json.dumps(variables), encoding="utf-8")
            argv += ["--extra-vars", f"@{path}"]
        run_logs.note(_heading(playbook, hosts, variables or {}))
        more = {
            "BOXWRIGHT_TERMINAL": "" if quiet else _terminal(),
            run_log.FILE: str(log or ""),
            run_log.SHOWN: "1" if call.verbose else "0",
        }
        silent = quiet and not call.verbose
        with (
            tunnels(playbook, hosts, inventories),
            become.handed_over(Path(scratch)) as given,
            overheard(silent=silent) as complaints,
        ):
            status, heard = _run(
                argv,
                environment(report, connecting_s) | more | given,
                subprocess.PIPE if silent else STDERR if quiet else None,
                complaints.sink,
            )
        if not report.exists():
            call.failed = True
            said = complaints.text() or heard.strip()
            run_logs.note(said or f"ansible-playbook ended with status {status} and said nothing")
            raise UserError(
                "Ansible stopped before it ran anything",
                why=(said or None) if silent else None,
                ways_out=() if silent else ("read its message above",),
            )
        data = json.loads(report.read_text(encoding="utf-8"))
    found = {name: concluded(HostReport(name, **host)) for name, host in data["hosts"].items()}
    whole = RunReport(status, float(data["seconds"]), found)
    call.failed = call.failed or bool(failed(whole, hosts))
    return whole


def _run(argv: Sequence[str], env: Mapping[str, str], stdout: int | None, stderr: int) -> tuple[int, str]:
    """The exit status of a program, and what it wrote where that was asked for; Ctrl-C ends it."""
    interrupts.check()
    with subprocess.Popen(
        argv, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, text=True
    ) as process:
        try:
            with interrupts.ending(process):
                heard, _ = process.communicate()
        except BaseException:
            process.kill()
            raise
    return process.returncode, heard or ""


def concluded(host: HostReport) -> HostReport:
    """The same, where it failed with what was left and what to type next (`left`, `next` of the failure)."""
    if host.failure is None:
        return host
    plan = next(iter(host.results.get("plan", ())), {}).get("ansible_facts", {}).get("box_plan", {})
    call = run_logs.call
    found = aftermath(host.name, host.failure, host.changed_tasks, plan, call.verb, call.words)
    return replace(host, failure={**host.failure, "left": list(found.left), "next": list(found.ways_out)})


def _heading(playbook: str, hosts: Sequence[str], variables: Mapping[str, Any]) -> str:
    """What a playbook's part of the log begins with. The run's name is that of the box's history."""
    run = (variables.get(VARIABLE) or {}).get("run")
    began = time.strftime("%Y-%m-%d %H:%M:%S %z")
    return f"PLAYBOOK  {playbook} on {', '.join(hosts)}, {began}" + (f", run {run}" if run else "")


def failed(report: RunReport, hosts: Sequence[str]) -> list[str]:
    """The hosts of `hosts` on which the run failed or never arrived."""
    return [name for name in hosts if name not in report.hosts or report.hosts[name].failure]
