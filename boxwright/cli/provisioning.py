"""The main verb: from the declaration to a model that answered."""

from __future__ import annotations

import ipaddress
import json
import shlex
import time
from collections.abc import Mapping, Sequence
from typing import Any

from boxwright.catalog.purpose import EMBEDDINGS, RERANKING, TEXT
from boxwright.cli import gateways, lab, rolling, run_summary
from boxwright.cli.ansible_run import HostReport, RunReport, failed, play
from boxwright.cli.console import say, say_aside, show_json, wrapped
from boxwright.cli.recording import recorded
from boxwright.cli.ssh_route import ssh_words
from boxwright.cli.ssh_trouble import explain, tell_end
from boxwright.cli.targets import targets
from boxwright.cli.turns import addresses, turn
from boxwright.cli.validating import refuse_problems
from boxwright.errors import EXIT_FAILED, EXIT_REFUSED
from boxwright.spec.inventory import Inventory

#: Advice that speaks of what a role of the same run mends: the role.
MENDED_BY = {"reboot-is-due": "nvidia_driver", "card-does-not-answer": "nvidia_driver"}
#: Its changes follow from other boxes too, of which a box's own plan knows nothing.
BEYOND_A_PLAN = {"gateway"}
#: What the line to try has ranked.
DOCUMENTS = ("Giant pandas eat bamboo.", "The capital of France is Paris.")


def provision(
    hosts: Sequence[str],
    inventories: Sequence[str],
    *,
    every: bool = False,
    check: bool = False,
    full: bool = False,
    as_json: bool = False,
) -> None:
    """Validate, start the lab where it is meant, run the playbook, and tell what came of it."""
    started = time.monotonic()
    inventory, names, paths = targets(hosts, inventories, every=every)
    refuse_problems(inventory, names)
    lab.ensure_simulated(inventory, names, as_json=as_json)
    fleet = gateways.fleet(inventory, names, paths)

    def run(hosts: Sequence[str], variables: Mapping[str, Any]) -> RunReport:
        return play(
            "provision.yml",
            hosts,
            paths,
            check=check,
            quiet=as_json,
            variables={
                **recorded("provision", paths, ["--full"] if full else []),
                **({"preflight_full": True} if full else {}),
                **variables,
            },
        )

    with turn(addresses([*names, *fleet.all_gateways], inventory.variables), say_aside):
        rolls = fleet.gateways and not check
        tell = say_aside if as_json else say
        report = rolling.provision(fleet, names, run, tell) if rolls else run(names, {})
    summaries = {name: summary(name, report, inventory, inventories, check=check) for name in names}
    for name in names:
        explain(name, summaries[name]["failure"], inventory)
    if as_json:
        show_json({"seconds": round(time.monotonic() - started, 1), "hosts": summaries})
    else:
        for name in names:
            _tell(name, summaries[name], time.monotonic() - started, check=check)
        if whole := run_summary.of_all(summaries, time.monotonic() - started, check=check):
            say()
            say(wrapped(whole, hang=2))
    unlucky = failed(report, names)
    if unlucky:
        kinds = {str((summaries[name]["failure"] or {}).get("kind")) for name in unlucky} - {
            run_summary.NOT_BEGUN
        }
        raise SystemExit(EXIT_REFUSED if kinds == {"refused"} else EXIT_FAILED)


def summary(
    name: str, report: RunReport, inventory: Inventory, inventories: Sequence[str], *, check: bool = False
) -> dict[str, Any]:
    """What a run came to on one host, by stable keys. unplanned: roles that changed what no plan listed."""
    host = report.hosts.get(
        name, HostReport(name, failure={"kind": "failed", "message": "the host was not visited"})
    )
    plan = next(iter(host.results.get("plan", ())), {}).get("ansible_facts", {}).get("box_plan", {})
    answers = {
        entry.get("name"): entry for gate in host.results.get("engine_gate", ()) for entry in _entries(gate)
    }
    endpoints = [
        _endpoint(name, deployment, answers.get(deployment["name"], {}), plan)
        for deployment in plan.get("deployments", [])
    ]
    for endpoint in endpoints:
        endpoint["curl"] = curl(name, endpoint, ssh_words(name, inventory.variables(name)), inventories)
    planned = None if plan.get("changes") is None else {change["role"] for change in plan["changes"]}
    changed = {str(task["role"]) for task in host.changed_tasks}
    return {
        "changed": host.changed,
        "unplanned": [] if planned is None else sorted(changed - planned - BEYOND_A_PLAN),
        "changes": [f"{task['role']}: {task['task']}" for task in host.changed_tasks],
        "advice": [
            advice["message"] for advice in plan.get("advice", []) if check or not _mended(advice, host)
        ],
        "roles": list(host.roles),
        "endpoints": endpoints,
        "failure": host.failure,
    }


def _mended(advice: Mapping[str, Any], host: HostReport) -> bool:
    """Whether the run has mended what the plan had found before it: its role has come to a good end since."""
    role = MENDED_BY.get(str(advice.get("id")))
    failed_in = (host.failure or {}).get("role")
    visited = {entry.get("role") for entry in host.roles if entry.get("visited")}
    return role is not None and role != failed_in and role in visited


def _entries(gate: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [gate] if "name" in gate else [item for item in gate.get("results", []) if isinstance(item, dict)]


def _endpoint(
    host: str, deployment: Mapping[str, Any], answer: Mapping[str, Any], plan: Mapping[str, Any]
) -> dict[str, Any]:
    """The address of a deployment as seen from here, what it was asked and what it answered."""
    address = str(deployment["bind"])
    bound = ipaddress.ip_address(address)
    if bound.is_unspecified:
        known = [str(one) for one in plan.get("facts", {}).get("addresses") or [host]]
        # `::` need not take IPv4, and `0.0.0.0` takes nothing else.
        address = next((one for one in known if (":" in one) == (bound.version == 6)), known[0])
    address = f"[{address}]" if ":" in address else address
    return {
        "name": deployment["name"],
        "model": deployment["served_name"],
        "url": f"http://{address}:{deployment['port']}/v1",
        "loopback": bound.is_loopback,
        "serves": deployment.get("serves") or TEXT,
        "prompt": (deployment.get("gate") or {}).get("prompt"),
        "answer": answer.get("answer"),
        "seconds": answer.get("seconds"),
    }


def inventory_arguments(inventories: Sequence[str]) -> list[str]:
    """The --inventory arguments of this call, to be repeated in a command that is shown."""
    return [word for path in inventories for word in ("--inventory", path)]


def curl(host: str, endpoint: Mapping[str, Any], ssh: Sequence[str], inventories: Sequence[str]) -> str:
    """One line that asks the endpoint; the key goes through a pipe, so that no process list shows it.

    ssh: the words that run a command on the box, for an endpoint that only the box itself reaches.
    """
    key = ["./invoke", "key", "--host", host, *inventory_arguments(inventories), "--header"]
    path, asked = request(endpoint)
    body = json.dumps(asked, ensure_ascii=False)
    ask = ["curl", "-s", f"{endpoint['url']}{path}", "-H", "@-",
           "-H", "Content-Type: application/json", "-d", body]  # fmt: skip
    if endpoint["loopback"]:
        ask = [*ssh, shlex.join(ask)]
    return f"{shlex.join(key)} | {shlex.join(ask)}"


def request(endpoint: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The path below /v1 and the body that ask an endpoint what the gate has asked it."""
    prompt, model = endpoint["prompt"] or "Say hello.", {"model": endpoint["model"]}
    if endpoint.get("serves") == EMBEDDINGS:
        return "/embeddings", {**model, "input": [prompt]}
    if endpoint.get("serves") == RERANKING:
        return "/rerank", {**model, "query": prompt, "documents": list(DOCUMENTS)}
    # Temperature 0, so that the same question gets the answer that was just seen.
    message = {"role": "user", "content": prompt}
    return "/chat/completions", {**model, "messages": [message], "temperature": 0, "max_tokens": 64}


def _tell(name: str, found: Mapping[str, Any], seconds: float, *, check: bool) -> None:
    if found["failure"]:
        # The run said it where it happened.
        tell_end(name, found["failure"])
        return
    say()
    say(run_summary.of_host(name, found["changed"], seconds, check=check))
    if check:
        return
    for change in found["changes"]:
        if change.partition(": ")[0] in found["unplanned"]:
            say(wrapped(f"note      no plan listed this change: {change}", 2, 10))
    for advice in found["advice"]:
        say(wrapped(f"note      {advice}", 2, 10))
    for endpoint in found["endpoints"]:
        reach = "  (reachable from the box itself only)" if endpoint["loopback"] else ""
        say(f"  endpoint  {endpoint['url']}  serves {endpoint['model']}{reach}")
        if endpoint["answer"]:
            say(wrapped(f"asked     {' '.join(str(endpoint['prompt']).split())}", 2, 10))
            say(wrapped(f"answered  {' '.join(str(endpoint['answer']).split())}", 2, 10))
        say(f"  try       {endpoint['curl']}")
