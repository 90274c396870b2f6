#!/usr/bin/python
"""Ansible module: each deployment's release serves and has answered, or the one before it serves again."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from typing import Any, Dict, List, Optional

from ansible.module_utils import systemctl
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.command import read, write
from ansible.module_utils.docker_api import Docker, DockerError
from ansible.module_utils.engine_probe import Answer, Endpoint, ProbeError, drafts
from ansible.module_utils.engine_service import Service
from ansible.module_utils.engine_store import FAILURE_FILE, Release, Store, deployments
from ansible.module_utils.engine_watch import GateError, Watch, question_of
from ansible.module_utils.progress import Progress

DOCUMENTATION = r"""
module: engine_gate
short_description: Each deployment's release serves, or the one before it does again
description:
  - Starts what is not running as declared, waits for it through its stages, and has the model answer a
    question.
  - A release that answered becomes the current one. One that does not is replaced by the release before it,
    which has
    to answer in its turn, and the module fails with the engine's own reason.
  - Deployments that are recorded on the host and not among the declared ones are stopped and removed.
options:
  deployments: {type: list, elements: dict, required: true, description: "Deployments of the plan."}
  releases: {type: dict, default: {}, description: "Deployment -> id of the release that is to serve."}
  root_dir: {type: path, required: true, description: "Where releases and caches lie."}
  start_timeout_s: {type: int, default: 1800, description: "Seconds for a whole start."}
  stage_timeouts_s: {type: dict, default: {}, description: "Seconds for one stage of a start."}
  keep_releases: {type: int, default: 3, description: "How many releases of a deployment stay on the host."}
  progress_file: {type: path, description: "Where to tell how far the work is."}
"""
RETURN = r"""
results:
  type: list
  description:
    - "For each deployment: name, release, previous, started, reasons, ready_seconds, answer, seconds,
      usage, drafts."
removed: {type: list, description: "Deployments that were stopped and removed."}
"""


class Gate:
    """One deployment on its way to a release."""

    def __init__(
        self, plan: Dict[str, Any], release: Release, params: Dict[str, Any], docker: Docker
    ) -> None:
        self.plan, self.release, self.params = plan, release, params
        self.name = release.state["name"]
        self.service = Service(self.name, docker)
        self.store = Store(params["root_dir"], self.name)
        self.progress = Progress(params["progress_file"])
        self.reasons = self.service.lacks(release)
        # One that is loading since a boot has said how far it is before anybody watched.
        self.watch = self._watch(None if self.reasons else self.service.state().began)

    def serve(self) -> Dict[str, Any]:
        """Start what must be started, wait, ask, promote. Raises GateError."""
        if not self.reasons:
            try:
                answer = self._ask()
            except GateError as error:
                # What answered once and does not any more is started once more before it is called broken.
                self.reasons.append(str(error))
        started = bool(self.reasons)
        if started:
            answer = self._start_and_ask()
        before = self.store.link("current")
        enabled = self.service.enable()
        promoted = self.store.promote(self.release.id)
        failure = self.store.path(self.release.id, FAILURE_FILE)
        if os.path.exists(failure):
            os.unlink(failure)
        return {
            "name": self.name,
            "release": self.release.id,
            "previous": before if promoted else self.store.link("previous"),
            "started": started,
            "reasons": self.reasons,
            "ready_seconds": self.watch.seconds if started else 0,
            "answer": answer.text,
            "seconds": answer.seconds,
            "usage": answer.usage,
            "drafts": self._drafts(),
            "pruned": self.store.prune(self.params["keep_releases"]),
            "changed": started or promoted or enabled,
        }

    def look(self) -> Dict[str, Any]:
        """What a run would do, without doing it; one that runs as declared is asked."""
        found: Dict[str, Any] = {"name": self.name, "release": self.release.id, "reasons": self.reasons}
        if not self.reasons:
            try:
                answer = self._ask()
                found.update(answer=answer.text, seconds=answer.seconds, usage=answer.usage)
            except GateError as error:
                self.reasons.append(str(error))
        return dict(found, changed=bool(self.reasons))

    def record(self, error: GateError) -> None:
        """Keep why this release failed, and its log, beside it."""
        document = {
            "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "kind": error.kind,
            "stage": error.stage,
            "what": str(error),
            "lines": error.lines,
            "log": self.watch.log[-400:],
        }
        write(self.store.path(self.release.id, FAILURE_FILE), json.dumps(document, indent=1) + "\n", 0o600)

    def _start_and_ask(self) -> Answer:
        self.progress.update("%s: starting release %s" % (self.name, self.release.id))
        self.watch = self._watch()
        try:
            self.service.start(self.release)
        except systemctl.UnitError as error:
            raise self.watch.failure("crashed", str(error)) from error
        self.watch.begin()
        return self._ask()

    def _ask(self) -> Answer:
        model = self.plan["served_name"]
        self.watch.until_listed(model, self.params["start_timeout_s"], self.params["stage_timeouts_s"])
        if self.release.state["access"] != "none":
            wrong = self.service.cards()
            if wrong:
                raise self.watch.failure("cards", "the container does not see its cards: %s" % wrong)
        return self.watch.ask(model, question_of(self.plan.get("gate")))

    def _watch(self, since: Optional[float] = None) -> Watch:
        key = (read(self.release.state["key_file"]) or "").strip()
        endpoint = Endpoint(self.release.state["bind"], self.release.state["port"], key)
        return Watch(
            self.name,
            endpoint,
            self.service.state,
            lambda: self.service.running_release() == self.release.id,
            systemctl.Journal(self.service.container, since).new,
            self.progress,
        )

    def _drafts(self) -> Optional[Dict[str, int]]:
        if not self.plan.get("speculative"):
            return None  # it does not draft
        key = (read(self.release.state["key_file"]) or "").strip()
        try:
            found = drafts(Endpoint(self.release.state["bind"], self.release.state["port"], key).metrics())
        except ProbeError:
            return None
        return {"drafted": found[0], "accepted": found[1]} if found else None


def go_back(gate: Gate, docker: Docker) -> str:
    """After a release failed: bring the one before it back. What came of it, as a sentence."""
    previous = gate.store.read(gate.store.link("current"))
    if previous is not None and previous.id == gate.release.id:
        return (
            "It is the release that served until now, so there is none to go back to; "
            "systemd starts it again up to its limit."
        )
    if previous is None:
        gate.service.stop()
        return "It was stopped; no release of %s has served before." % gate.name
    old = Gate(previous.plan, previous, gate.params, docker)
    old.progress.update("%s: going back to release %s" % (gate.name, previous.id))
    if old.service.install(previous):
        systemctl.call("daemon-reload")
    old.reasons = ["release %s did not serve" % gate.release.id]
    try:
        old.serve()
    except GateError as error:
        return "NOTHING SERVES %s NOW: the release before it, %s, did not come back either: %s" % (
            gate.name,
            previous.id,
            "\n".join([str(error), *error.lines]),
        )
    return "The release before it, %s, serves again." % previous.id


def describe(gate: Gate, error: GateError, after: str) -> str:
    """What a person reads about a release that does not serve: why, what became of it, where to look."""
    lines = ["%s: release %s does not serve: %s" % (gate.name, gate.release.id, error)]
    lines += ["  " + line for line in error.lines]
    lines = [after, *lines] if after.startswith("NOTHING") else [*lines, after]
    lines.append(
        "Its log: journalctl -t %s; kept in %s"
        % (gate.service.container, gate.store.path(gate.release.id, FAILURE_FILE))
    )
    return "\n".join(lines)


def remove_dropped(params: Dict[str, Any], docker: Docker, check: bool) -> List[str]:
    """Stop and remove what is recorded on the host and declared no more; its key stays, it may come back."""
    declared = {deployment["name"] for deployment in params["deployments"]}
    dropped = [name for name in deployments(params["root_dir"]) if name not in declared]
    for name in dropped if not check else ():
        Service(name, docker).remove()
        Store(params["root_dir"], name).forget()
        cache = os.path.join(params["root_dir"], "cache", name)
        if os.path.isdir(cache):
            shutil.rmtree(cache)
    return dropped


def install(gates: List[Gate]) -> None:
    """Put the units of releases that are to start in place, and have systemd read them once."""
    written = [gate.service.install(gate.release) for gate in gates if gate.reasons]
    if any(written) or any(gate.service.state().stale for gate in gates):
        systemctl.call("daemon-reload")
    starting = [gate for gate in gates if gate.reasons]
    if len(starting) > 1:
        # They may have swapped cards or ports: none may hold what another one needs.
        for gate in starting:
            gate.service.stop()


def main() -> None:
    """Bring every deployment to its release."""
    module = AnsibleModule(
        argument_spec={
            "deployments": {"type": "list", "elements": "dict", "required": True},
            "releases": {"type": "dict", "default": {}},
            "root_dir": {"type": "path", "required": True},
            "start_timeout_s": {"type": "int", "default": 1800},
            "stage_timeouts_s": {"type": "dict", "default": {}},
            "keep_releases": {"type": "int", "default": 3},
            "progress_file": {"type": "path"},
        },
        supports_check_mode=True,
    )
    params, check, docker = module.params, module.check_mode, Docker()
    results: List[Dict[str, Any]] = []
    failures: List[str] = []
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
            install(gates)
            for gate in gates:
                try:
                    results.append(gate.serve())
                except GateError as error:
                    gate.record(error)
                    failures.append(describe(gate, error, go_back(gate, docker)))
    except (systemctl.UnitError, DockerError) as error:
        module.fail_json(msg=str(error), results=results)
    changed = bool(removed or failures or any(result["changed"] for result in results))
    if failures:
        module.fail_json(msg="\n\n".join(failures), results=results, removed=removed, changed=changed)
    module.exit_json(changed=changed, results=results, removed=removed, said=_said(results, removed))


def _refuse_bad_pattern(module: AnsibleModule, plan: Dict[str, Any]) -> None:
    """Before anything is stopped: an answer is going to be held against this."""
    expect = question_of(plan.get("gate")).expect
    try:
        re.compile(expect or "")
    except re.error as error:
        module.fail_json(
            msg="%s: gate_expect %r is no regular expression: %s" % (plan["name"], expect, error)
        )


def _said(results: List[Dict[str, Any]], removed: List[str]) -> str:
    said = ["%s removed" % name for name in removed]
    said += [
        "%s: %s" % (result["name"], "; ".join(result["reasons"])) for result in results if result["reasons"]
    ]
    return ", ".join(said)


if __name__ == "__main__":
    main()
