#!/usr/bin/python
"""Ansible module: how fast a deployment's release answers, measured by the engine's own benchmark."""

from __future__ import annotations

import time
from typing import Any, Dict, List

from ansible.module_utils import bench_run, bench_store, diagnosis_reading
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.bench_client import Client, ClientError
from ansible.module_utils.bench_points import Point, PointError, points
from ansible.module_utils.bench_run import Bench
from ansible.module_utils.docker_api import Docker, DockerError
from ansible.module_utils.engine_container import container_name
from ansible.module_utils.engine_probe import ProbeError, endpoint_of
from ansible.module_utils.engine_service import Service
from ansible.module_utils.engine_store import ChoiceError, Release, Store, chosen
from ansible.module_utils.progress import Progress

DOCUMENTATION = r"""
module: engine_bench
short_description: How fast a release answers, measured and kept
description:
  - Runs `vllm bench serve` of the release inside its own container, over a sweep of requests at once and one
    of context, and keeps each run on the host with the release, the cards and the engine's counters.
  - Nothing is changed. Requests of others that arrive meanwhile are told by their tokens.
options:
  deployment: {type: str, description: "Which one; needed where the host has several."}
  release: {type: str, description: "Id of the release that must be running; left out, the one that counts."}
  prompts: {type: list, elements: str, required: true, description: "Texts to ask."}
  concurrencies: {type: list, elements: int, default: [], description: "Requests at once; empty: by twos."}
  contexts: {type: list, elements: int, default: [], description: "Tokens of a prompt; empty: by fours."}
  repeats: {type: int, default: 3, description: "How often each point is measured."}
  output_tokens: {type: int, default: 128, description: "Tokens of each answer."}
  limit_s: {type: int, default: 1200, description: "Seconds after which no further repeat begins."}
  root_dir: {type: path, required: true, description: "Where releases and runs lie."}
  config_dir: {type: path, required: true, description: "Where keys lie."}
  progress_file: {type: path, description: "Where to tell how far the work is."}
"""
EXAMPLES = r"""
- name: How fast it answers
  engine_bench:
    prompts: ["Tell the history of the metre."]
    root_dir: /var/lib/boxwright
    config_dir: /etc/boxwright
"""
RETURN = r"""
run: {description: "The run as it is kept, for boxwright.bench.run.", type: dict, returned: always}
path: {description: "Where it is kept.", type: str, returned: always}
"""


class BenchError(Exception):
    """Nothing can be measured; the text says why."""


def current(params: Dict[str, Any]) -> Release:
    """The release that is meant and serves. Raises BenchError or ChoiceError."""
    name = chosen(params["root_dir"], params["deployment"])
    store = Store(params["root_dir"], name)
    wanted = params["release"]
    release = store.read(wanted or store.link("current"))
    if wanted and Service(name, Docker()).running_release() != wanted:
        raise BenchError("release %s of %s does not run any more" % (wanted, name))
    if release is None:
        raise BenchError("no release of %s serves on the host" % name)
    serves = release.plan.get("serves") or "text"
    if serves != "text":
        raise BenchError(
            "%s serves %s, and the benchmark measures how fast text is written; verify lets it answer"
            % (name, serves)
        )
    if release.state["engine"] != "vllm":
        raise BenchError(
            "%s is served by %s, which has no `vllm bench serve`" % (name, release.state["engine"])
        )
    return release


def context_of(release: Release) -> int:
    """Tokens that the release takes at most; its engine is asked where that was left to it.

    Raises BenchError.
    """
    declared = release.plan.get("context")
    if isinstance(declared, int):
        return declared
    try:
        found = endpoint_of(release.state).longest(release.plan.get("served_name") or release.state["name"])
    except ProbeError as error:
        raise BenchError("%s does not answer now: %s" % (release.state["name"], error)) from error
    if found is None:
        raise BenchError("%s does not say how many tokens it takes" % release.state["name"])
    return int(found)


def planned(params: Dict[str, Any], release: Release) -> List[Point]:
    """The points of the sweeps, within what the release was made for. Raises BenchError."""
    try:
        found: List[Point] = points(
            params["concurrencies"],
            params["contexts"],
            params["output_tokens"],
            context_of(release),
            int(release.plan.get("concurrency") or 1),
        )
    except PointError as error:
        raise BenchError(str(error)) from error
    if not found:
        raise BenchError("nothing to measure: both sweeps are empty")
    return found


def measured(params: Dict[str, Any], release: Release, secrets: List[str]) -> Dict[str, Any]:
    """The whole run. Raises BenchError when not one point could be measured."""
    wanted = planned(params, release)
    progress = Progress(params["progress_file"])
    client = Client(container_name(release.state["name"]))
    bench = Bench(
        release,
        client,
        params["prompts"],
        params["output_tokens"],
        lambda stage, done, total: progress.update("measures " + stage, done, total, "repeats"),
    )
    status = diagnosis_reading.health(endpoint_of(release.state))
    if status != 200:
        raise BenchError("%s does not serve now (/health: %s)" % (release.state["name"], status or "none"))
    busy = bench.busy()
    if busy:
        raise BenchError(
            "%s has %d requests of others in hand: figures would be of both" % (release.state["name"], busy)
        )
    now = time.time()
    run = {
        "format": bench_run.FORMAT,
        "id": bench_store.new_id(release.id, now),
        "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)),
        "deployment": release.state["name"],
        "release": release.id,
        "image": release.plan.get("image"),
        "state": release.state,
        "plan": {
            name: release.plan.get(name)
            for name in ("speed", "context", "concurrency", "speculative", "gpus")
        },
        "options": {name: params[name] for name in ("repeats", "output_tokens", "limit_s")},
        "facts": bench_run.facts(release.state["devices"]),
    }
    try:
        client.prepare()
        run.update(bench.measure(wanted, params["repeats"], params["limit_s"]))
    except ClientError as error:
        raise BenchError("%s: its container: %s" % (release.state["name"], error)) from error
    finally:
        client.forget()
    whole: Dict[str, Any] = diagnosis_reading.masked(run, secrets)
    if not any(point["repeats"] for point in whole["points"]):
        why = next((point["failed"] for point in whole["points"] if point["failed"]), "no time")
        raise BenchError("%s: the benchmark measured nothing: %s" % (release.state["name"], why))
    return whole


def main() -> None:
    """Find the release, measure it, keep the run."""
    module = AnsibleModule(
        argument_spec={
            "deployment": {"type": "str"},
            "release": {"type": "str"},
            "prompts": {"type": "list", "elements": "str", "required": True},
            "concurrencies": {"type": "list", "elements": "int", "default": []},
            "contexts": {"type": "list", "elements": "int", "default": []},
            "repeats": {"type": "int", "default": 3},
            "output_tokens": {"type": "int", "default": 128},
            "limit_s": {"type": "int", "default": 1200},
            "root_dir": {"type": "path", "required": True},
            "config_dir": {"type": "path", "required": True},
            "progress_file": {"type": "path"},
        },
        supports_check_mode=False,
    )
    params = module.params
    try:
        run = measured(params, current(params), diagnosis_reading.keys(params["config_dir"]))
    except (BenchError, ChoiceError, DockerError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, run=run, path=bench_store.keep(params["root_dir"], run))


if __name__ == "__main__":
    main()
