"""The main verb: from the declaration to a model that answered."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from typing import Any

from boxwright.cli import lab
from boxwright.cli.ansible_run import HostReport, RunReport, failed, play
from boxwright.cli.console import say, show_json
from boxwright.cli.targets import targets
from boxwright.cli.validating import refuse_problems
from boxwright.errors import EXIT_FAILED, EXIT_REFUSED
from boxwright.spec.inventory import Inventory

#: Hosts of this inventory group are simulated; they are started before they are provisioned.
LAB_GROUP = "lab"
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def provision(hosts: Sequence[str], inventories: Sequence[str], *, check: bool = False, verbose: bool = False,
              as_json: bool = False) -> None:
    """Validate, start the lab where it is meant, run the playbook, and tell what came of it."""
    started = time.monotonic()
    inventory, names, paths = targets(hosts, inventories)
    refuse_problems(inventory, names)
    simulated = [name for name in names if LAB_GROUP in inventory.groups(name)]
    if simulated:
        lab.ensure(simulated)
    report = play("provision.yml", names, paths, check=check, quiet=as_json, verbose=int(verbose))
    summaries = {name: summary(name, report, inventory) for name in names}
    if as_json:
        show_json({"seconds": round(time.monotonic() - started, 1), "hosts": summaries})
    else:
        for name in names:
            _tell(name, summaries[name], time.monotonic() - started, check=check, as_arguments=hosts_arguments(inventories))
    unlucky = failed(report, names)
    if unlucky:
        kinds = {str((summaries[name]["failure"] or {}).get("kind")) for name in unlucky}
        raise SystemExit(EXIT_REFUSED if kinds == {"refused"} else EXIT_FAILED)


def summary(name: str, report: RunReport, inventory: Inventory) -> dict[str, Any]:
    """What a run came to on one host, by stable keys."""
    host = report.hosts.get(name, HostReport(name, failure={"kind": "failed", "message": "the host was not visited"}))
    plan = next(iter(host.results.get("plan", ())), {})
    found = plan.get("ansible_facts", {}).get("box_plan", {})
    answers = {entry.get("name"): entry for gate in host.results.get("engine_gate", ()) for entry in _entries(gate)}
    return {
        "changed": host.changed,
        "changes": [f"{task['role']}: {task['task']}" for task in host.changed_tasks],
        "advice": [advice["message"] for advice in found.get("advice", [])],
        "roles": list(host.roles),
        "endpoints": [_endpoint(name, one, answers.get(one["name"]), found, inventory)
                      for one in found.get("deployments", [])],
        "failure": host.failure,
    }


def _entries(gate: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [gate] if "name" in gate else [item for item in gate.get("results", []) if isinstance(item, dict)]


def _endpoint(host: str, deployment: Mapping[str, Any], answer: Mapping[str, Any] | None,
              plan: Mapping[str, Any], inventory: Inventory) -> dict[str, Any]:
    """The address of a deployment as seen from here, and a command that asks it something."""
    bind, port = str(deployment["bind"]), deployment["port"]
    addresses = plan.get("facts", {}).get("addresses") or []
    loopback = bind in LOOPBACK
    address = bind if bind not in ("0.0.0.0", "::") else str(addresses[0] if addresses else host)
    url = f"http://{address if ':' not in address else f'[{address}]'}:{port}"
    return {"name": deployment["name"], "model": deployment["served_name"], "url": f"{url}/v1",
            "loopback": loopback, "answer": (answer or {}).get("answer"), "prompt": (deployment.get("gate") or {}).get("prompt"),
            "seconds": (answer or {}).get("seconds")}


def hosts_arguments(inventories: Sequence[str]) -> list[str]:
    """The --inventory arguments of this call, to be repeated in a command that is shown."""
    return [word for path in inventories for word in ("--inventory", path)]


def curl(host: str, endpoint: Mapping[str, Any], ssh: Sequence[str], as_arguments: Sequence[str]) -> str:
    """One line that asks the endpoint; the key is read by the command, never shown."""
    key = shlex.join(["./invoke", "key", "--host", host, *as_arguments])
    body = f'{{"model": "{endpoint["model"]}", "messages": [{{"role": "user", "content": "{endpoint["prompt"]}"}}]}}'
    url = f"{endpoint['url']}/chat/completions"
    return (f"curl -s {url} -H \"Authorization: Bearer $({key})\" "
            f"-H 'Content-Type: application/json' -d {shlex.quote(body)}")


def _tell(name: str, found: Mapping[str, Any], seconds: float, *, check: bool, as_arguments: Sequence[str]) -> None:
    if found["failure"]:
        return  # the run said it where it happened
    say()
    if check:
        say(f"{name}: {found['changed']} changes would be made; nothing was done")
        return
    what = "nothing had to change" if not found["changed"] else f"{found['changed']} changes"
    say(f"{name}: {what}, {seconds:.0f} s")
    for advice in found["advice"]:
        say(f"  note      {advice}")
    for endpoint in found["endpoints"]:
        say(f"  endpoint  {endpoint['url']}  ({endpoint['model']})"
            + ("  from the box itself only" if endpoint["loopback"] else ""))
        if endpoint["answer"]:
            say(f"  asked     {endpoint['prompt']}")
            say(f"  answered  {' '.join(str(endpoint['answer']).split())}")
        say(f"  try       {curl(name, endpoint, (), as_arguments)}")
