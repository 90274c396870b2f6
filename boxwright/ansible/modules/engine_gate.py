#!/usr/bin/python
"""Ansible module: each deployment's release serves and has answered, or the one before it serves again."""

from __future__ import annotations

import os
import re
import shutil
from typing import Any, Dict, List

from ansible.module_utils import systemctl
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.docker_api import Docker, DockerError
from ansible.module_utils.engine_bring import ARGUMENTS, bring_all, engines_alone, message
from ansible.module_utils.engine_container import NETWORK
from ansible.module_utils.engine_prune import dropped, prune, remove_images
from ansible.module_utils.engine_service import Service
from ansible.module_utils.engine_store import Store, deployments
from ansible.module_utils.engine_switch import Gate
from ansible.module_utils.engine_watch import question_of
from ansible.module_utils.store_room import BusyError

DOCUMENTATION = r"""
module: engine_gate
short_description: Each deployment's release serves, or the one before it does again
description:
  - Starts what is not running as declared, waits for it through its stages, and has the model answer a
    question.
  - A release that answered becomes the current one. One that does not is replaced by the release before it,
    which has
    to answer in its turn, and the module fails with the engine's log, in which the controller finds the
    reason.
  - Deployments that are recorded on the host and not among the declared ones are stopped and removed.
options:
  deployments: {type: list, elements: dict, required: true, description: "Deployments of the plan."}
  releases: {type: dict, default: {}, description: "Deployment -> id of the release that is to serve."}
  root_dir: {type: path, required: true, description: "Where releases and caches lie."}
  start_timeout_s: {type: int, default: 1800, description: "Seconds for a whole start."}
  stage_timeouts_s: {type: dict, default: {}, description: "Seconds for one stage of a start."}
  drain_seconds: {type: int, default: 60, description: "Seconds that running requests have to finish."}
  warm_tokens: {type: int, default: 8192, description: "Tokens of the longest prompt before traffic."}
  gate_skip: {type: list, elements: str, default: [], description: "Parts of the exam to leave out."}
  keep_releases: {type: int, default: 3, description: "How many releases of a deployment stay on the host."}
  progress_file: {type: path, description: "Where to tell how far the work is."}
"""
RETURN = r"""
results:
  type: list
  description:
    - "For each deployment: name, release, before (which served when the run began), previous,
      started, reasons, drifted (it has served before, and not
      been left as it was), ready_seconds, answer, seconds, usage, exam (what was seen in it), drafts."
removed: {type: list, description: "Deployments that were stopped and removed."}
pruned: {type: dict, description: "What went because it is old: releases, and images that nothing else used."}
failures:
  type: list
  description: "Releases that do not serve: name, release, kind, stage, what, after, where, log, after_log."
"""


def remove_dropped(params: Dict[str, Any], docker: Docker, check: bool) -> List[str]:
    """Stop and remove what is recorded on the host and declared no more; its key stays, it may come back."""
    declared = {deployment["name"] for deployment in params["deployments"]}
    removed = [name for name in deployments(params["root_dir"]) if name not in declared]
    for name in removed if not check else ():
        Service(name, docker).remove()
        images = dropped(params["root_dir"], name)
        Store(params["root_dir"], name).forget()
        remove_images(params["root_dir"], images, docker)
        cache = os.path.join(params["root_dir"], "cache", name)
        if os.path.isdir(cache):
            shutil.rmtree(cache)
    if removed and not declared and not check:
        docker.remove_network(NETWORK)
    return removed


def main() -> None:
    """Bring every deployment to its release."""
    module = AnsibleModule(
        argument_spec={
            "deployments": {"type": "list", "elements": "dict", "required": True},
            "releases": {"type": "dict", "default": {}},
            "root_dir": {"type": "path", "required": True},
            **ARGUMENTS,
            "keep_releases": {"type": "int", "default": 3},
        },
        supports_check_mode=True,
    )
    params = module.params
    if module.check_mode or not os.path.isdir(os.path.join(params["root_dir"], "releases")):
        bring(module)
        return
    try:
        with engines_alone(params):
            bring(module)
    except BusyError as error:
        module.fail_json(msg="the engines of this host are being started: %s" % error)


def bring(module: AnsibleModule) -> None:
    """Do it, as the only one who does, or look at what would be done; ends the module."""
    params, check, docker = module.params, module.check_mode, Docker()
    results: List[Dict[str, Any]] = []
    failures: List[Dict[str, Any]] = []
    pruned: Dict[str, List[str]] = {}
    try:
        for plan in params["deployments"]:
            _refuse_bad_pattern(module, plan)
        removed = remove_dropped(params, docker, check)
        gates = []
        for plan in params["deployments"]:
            release = Store(params["root_dir"], plan["name"]).read(params["releases"].get(plan["name"]))
            if release is None and not check:
                module.fail_json(
                    msg="%s: its release %s is not on the host; module engine_release makes it"
                    % (plan["name"], params["releases"].get(plan["name"]))
                )
            if release is None:
                results.append({"name": plan["name"], "reasons": ["it has no release yet"], "changed": True})
            else:
                gates.append(Gate(plan, release, params, docker))
        if check:
            results += [gate.look() for gate in gates]
        else:
            served, failures = bring_all(gates, docker)
            results += served
            if not failures:
                pruned = prune(params["root_dir"], params["keep_releases"], docker)
    except (systemctl.UnitError, DockerError, OSError) as error:
        module.fail_json(msg=str(error), results=results)
    changed = bool(removed or failures or any(result["changed"] for result in results))
    if failures:
        module.fail_json(
            msg=message(failures),
            failures=failures,
            results=results,
            removed=removed,
            changed=changed,
        )
    module.exit_json(
        changed=changed, results=results, removed=removed, pruned=pruned, said=_said(results, removed, check)
    )


def _refuse_bad_pattern(module: AnsibleModule, plan: Dict[str, Any]) -> None:
    """Before anything is stopped: an answer is going to be held against this."""
    expect = question_of(plan.get("gate")).expect
    try:
        re.compile(expect or "")
    except re.error as error:
        module.fail_json(
            msg="%s: gate_expect %r is no regular expression: %s" % (plan["name"], expect, error)
        )


def _said(results: List[Dict[str, Any]], removed: List[str], check: bool) -> str:
    """What was (or would be) done. A release that served before is started anew for a reason that is told."""
    said = ["%s removed" % name for name in removed]
    for result in results:
        if not result["reasons"]:
            continue
        name, release = result["name"], result.get("release")
        verb = "would serve" if check else "serves"
        served = "%s %s release %s" % (name, verb, release) if release else "%s would be started" % name
        why = " again, for %s" % "; ".join(result["reasons"]) if result.get("drifted") else ""
        said.append(served + why)
    return ", ".join(said)


if __name__ == "__main__":
    main()
