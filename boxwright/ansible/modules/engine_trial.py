#!/usr/bin/python
"""Ansible module: a release serves on trial, and what counts serves again after it."""

from __future__ import annotations

import os
from typing import Any, Dict, Optional

from ansible.module_utils import engine_trial, systemctl
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.docker_api import Docker, DockerError
from ansible.module_utils.engine_bring import ARGUMENTS, LOCK, engines_alone, message
from ansible.module_utils.engine_prune import remove_images
from ansible.module_utils.engine_return import describe, go_back
from ansible.module_utils.engine_service import Service
from ansible.module_utils.engine_store import ChoiceError, Store, chosen
from ansible.module_utils.engine_switch import Gate
from ansible.module_utils.engine_trial import Timer, TrialError
from ansible.module_utils.engine_watch import STAGE_TIMEOUTS_S, GateError
from ansible.module_utils.progress import Progress
from ansible.module_utils.store_room import BusyError, alone

DOCUMENTATION = r"""
module: engine_trial
short_description: A release serves on trial, and what counts serves again after it
description:
  - "C(begun) records what is there: the release that counts, and those on the disk."
  - "C(tried) starts a release and examines it as one that is to be promoted, but promotes nothing. One that
    does not pass makes way for the release that counts."
  - "C(ended) has the release that counts serve and answer again, the cards at their declared limits, and
    removes the releases that were made for trials."
  - A timer on the host does the same where nobody comes back for it; a reboot ends a trial, too.
options:
  state: {type: str, required: true, choices: [begun, tried, ended], description: "What to do."}
  deployment: {type: str, description: "Which one; needed where the host has several."}
  plan: {type: dict, description: "The deployment's part of the plan, to try."}
  release: {type: str, description: "Id of the release to try."}
  measure_s: {type: int, default: 1200, description: "Seconds that a trial may go on after its exam."}
  root_dir: {type: path, required: true, description: "Where releases and caches lie."}
  start_timeout_s: {type: int, default: 1800, description: "Seconds for a whole start."}
  stage_timeouts_s: {type: dict, default: {}, description: "Seconds for one stage of a start."}
  drain_seconds: {type: int, default: 60, description: "Seconds that running requests have to finish."}
  warm_tokens: {type: int, default: 8192, description: "Tokens of the longest prompt before traffic."}
  gate_skip: {type: list, elements: str, default: [], description: "Parts of the exam to leave out."}
  progress_file: {type: path, description: "Where to tell how far the work is."}
"""
RETURN = r"""
deployment: {type: str, description: "Which one."}
origin: {type: str, description: "The release that counts."}
releases: {type: dict, description: "begun: id -> what a release was declared as, where known."}
serves: {type: bool, description: "ended: whether the release that counts serves and has answered."}
removed: {type: list, description: "ended: releases that were made for trials and went."}
images: {type: list, description: "ended: images that only these were made of, and that went."}
limits: {type: str, description: "ended: why the cards are not at their limits again, if so."}
failures: {type: list, description: "As engine_gate's."}
"""
#: Seconds beyond its own limits that a trial may take (its exam, a drain, a stop) until the timer ends it.
GRACE_S = 300


def begun(params: Dict[str, Any], store: Store) -> Dict[str, Any]:
    """Record what is there. Raises TrialError."""
    found = engine_trial.begin(store)
    Timer(store.name).arm(params["measure_s"] + GRACE_S)
    known = [store.read(one) for one in store.releases()]
    declared = {one.id: one.plan.get("declared") for one in known if one is not None}
    return {"changed": False, "releases": declared, **engine_trial.told(found)}


def tried(params: Dict[str, Any], store: Store, docker: Docker) -> Dict[str, Any]:
    """Have a release serve on trial. Raises TrialError, GateError by way of `failures`."""
    before = engine_trial.begin(store)
    release = store.read(params["release"])
    if release is None:
        raise TrialError("release %s of %s is not on the host" % (params["release"], store.name))
    timer = Timer(store.name)
    timer.arm(params["start_timeout_s"] + params["drain_seconds"] + params["measure_s"] + GRACE_S)
    with engines_alone(params):
        gate = Gate(params["plan"] or release.plan, release, params, docker)
        try:
            found = gate.try_out()
        except GateError as error:
            gate.record(error)
            failures = [describe(gate, error, go_back(gate, docker))]
            return {"changed": True, "failures": failures, **engine_trial.told(before)}
    timer.arm(params["measure_s"] + GRACE_S)
    return {"changed": found["changed"], "results": [found], **engine_trial.told(before)}


def ended(params: Dict[str, Any], store: Store, docker: Docker) -> Dict[str, Any]:
    """Have what counts serve again. Without trials under way nothing is done."""
    before = engine_trial.kept(store)
    if before is None:
        return {"changed": False, "serves": True, "removed": [], "origin": store.link("current")}
    # Whoever brought another release meanwhile meant it.
    origin = store.link("current") or before.origin
    service, progress = Service(store.name, docker), Progress(params["progress_file"])
    wrong = engine_trial.limits_back()
    progress.update("%s: going back to release %s" % (store.name, origin))
    lock = os.path.join(params["root_dir"], "releases", LOCK)
    with alone(lock, engine_trial.end_foreign(service, origin), params["start_timeout_s"]):
        failure = _back(params, store, origin, docker)
    if failure:
        # The record stays, and the timer: the next call tries again.
        return {"changed": True, "serves": False, "failures": [failure], "origin": origin}
    Timer(store.name).disarm()
    removed, spare = engine_trial.forget(store)
    images = remove_images(params["root_dir"], spare, docker)
    return {
        "changed": True,
        "serves": True,
        "removed": removed,
        "images": images,
        "origin": origin,
        "limits": wrong,
    }


def _back(params: Dict[str, Any], store: Store, origin: str, docker: Docker) -> Optional[Dict[str, Any]]:
    """The release that counts serves; else what there is to tell."""
    release = store.read(origin)
    if release is None:
        raise TrialError(
            "NOTHING SERVES %s NOW: its release %s is not on the host any more" % (store.name, origin)
        )
    # It has served before: a stage of it that lasts long is a busy host's, not a hang.
    patient = dict.fromkeys(STAGE_TIMEOUTS_S, params["start_timeout_s"])
    gate = Gate(release.plan, release, dict(params, stage_timeouts_s=patient), docker, thorough=False)
    try:
        if gate.service.install(release):
            systemctl.call("daemon-reload")
        gate.serve()
    except GateError as error:
        gate.record(error)
        described: Dict[str, Any] = describe(gate, error, go_back(gate, docker))
        return dict(
            described, after="NOTHING SERVES %s NOW; systemd starts it again up to its limit." % store.name
        )
    return None


def main() -> None:
    """Do what is asked."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "required": True, "choices": ["begun", "tried", "ended"]},
            "deployment": {"type": "str"},
            "plan": {"type": "dict"},
            "release": {"type": "str"},
            "measure_s": {"type": "int", "default": 1200},
            "root_dir": {"type": "path", "required": True},
            **ARGUMENTS,
        },
        supports_check_mode=False,
    )
    params, docker = module.params, Docker()
    try:
        store = Store(params["root_dir"], chosen(params["root_dir"], params["deployment"]))
        if params["state"] == "begun":
            found = begun(params, store)
        elif params["state"] == "tried":
            found = tried(params, store, docker)
        else:
            found = ended(params, store, docker)
    except BusyError as error:
        module.fail_json(msg="the engines of this host are being started: %s" % error)
    except (TrialError, ChoiceError, systemctl.UnitError, DockerError, OSError) as error:
        module.fail_json(msg=str(error))
    found["deployment"] = store.name
    if found.get("failures"):
        module.fail_json(msg=message(found["failures"]), **found)
    module.exit_json(**found)


if __name__ == "__main__":
    main()
