"""From one release of a deployment to the next: live when it has answered, back when it has not."""

from __future__ import annotations

import json
import os
import time
from typing import Any, Dict, List, NamedTuple, Optional

from ansible.module_utils import systemctl
from ansible.module_utils.command import read, write
from ansible.module_utils.docker_api import Docker, DockerError
from ansible.module_utils.engine_probe import DRAFTS, Answer, Endpoint
from ansible.module_utils.engine_service import Service
from ansible.module_utils.engine_store import FAILURE_FILE, Release, Store
from ansible.module_utils.engine_watch import STAGE_TIMEOUTS_S, GateError, Watch, question_of
from ansible.module_utils.masking import mask
from ansible.module_utils.progress import Progress

#: Lines of a failed release's log that are kept beside it: an engine's cause stands far above its end.
KEPT_LOG = 2000


class Return(NamedTuple):
    """What became of going back. text: a sentence. log: of a release that did not come back either."""

    text: str
    log: List[str]


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
        self.drafts: Optional[Dict[str, int]] = None
        # One that is loading since a boot has said how far it is before anybody watched.
        self.watch = self._watch()

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
            "drifted": started and before == self.release.id,
            "ready_seconds": self.watch.seconds if started else 0,
            "answer": answer.text,
            "seconds": answer.seconds,
            "usage": answer.usage,
            "drafts": self.drafts,
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
        drifted = bool(self.reasons) and self.store.link("current") == self.release.id
        return dict(found, drifted=drifted, changed=bool(self.reasons))

    def record(self, error: GateError) -> None:
        """Keep why this release failed, and its log, beside it."""
        document = {
            "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "kind": error.kind,
            "stage": error.stage,
            "what": str(error),
            "log": self.masked(error.log[-KEPT_LOG:]),
        }
        write(self.store.path(self.release.id, FAILURE_FILE), json.dumps(document, indent=1) + "\n", 0o600)

    def masked(self, log: List[str]) -> List[str]:
        """Lines of the engine's log, without its key."""
        key = (read(self.release.state["key_file"]) or "").strip()
        return [mask(line, [key]) for line in log]

    def _start_and_ask(self) -> Answer:
        self.progress.update("%s: starting release %s" % (self.name, self.release.id))
        failure = ""
        try:
            self.service.start(self.release)
        except systemctl.UnitError as error:
            failure = str(error)
        # Only now: until it was stopped, the engine before it went on writing.
        self.watch = self._watch()
        if failure:
            raise self.watch.failure("crashed", failure)
        return self._ask()

    def _ask(self) -> Answer:
        model = self.plan["served_name"]
        self.watch.until_listed(model, self.params["start_timeout_s"], self.params["stage_timeouts_s"])
        if self.release.state["access"] != "none":
            wrong = self.service.cards()
            if wrong:
                raise self.watch.failure("cards", "the container does not see its cards: %s" % wrong)
        answer: Answer = self.watch.ask(model, question_of(self.plan.get("gate")))
        counters = (self.plan.get("runtime") or {}).get("drafts", DRAFTS)
        if self.plan.get("speculative") and counters:
            drafted, accepted = self.watch.drafts(counters)
            self.drafts = {"drafted": drafted, "accepted": accepted}
        return answer

    def _watch(self) -> Watch:
        key = (read(self.release.state["key_file"]) or "").strip()
        endpoint = Endpoint(self.release.state["bind"], self.release.state["port"], key)
        return Watch(
            self.name,
            endpoint,
            self.service.state,
            lambda: self.service.running_release() == self.release.id,
            systemctl.Journal.of_start(self.service.state().invocation).new,
            self.progress,
        )


def go_back(gate: Gate, docker: Docker) -> Return:
    """After a release failed: bring the one before it back."""
    previous = gate.store.read(gate.store.link("current"))
    if previous is not None and previous.id == gate.release.id:
        return Return(
            "It is the release that served until now, so there is none to go back to; "
            "systemd starts it again up to its limit.",
            [],
        )
    try:
        if previous is None:
            gate.service.stop()
            return Return("It was stopped; no release of %s has served before." % gate.name, [])
        # It has served before: a stage of it that lasts long is a busy host's, not a hang.
        patient = dict.fromkeys(STAGE_TIMEOUTS_S, gate.params["start_timeout_s"])
        params = dict(gate.params, stage_timeouts_s=patient)
        return _return_to(Gate(previous.plan, previous, params, docker), gate)
    except (systemctl.UnitError, DockerError) as error:
        return Return("NOTHING SERVES %s NOW: %s" % (gate.name, error), [])


def _return_to(old: Gate, failed: Gate) -> Return:
    old.progress.update("%s: going back to release %s" % (old.name, old.release.id))
    old.reasons = ["release %s did not serve" % failed.release.id]
    if old.service.install(old.release):
        systemctl.call("daemon-reload")
    try:
        old.serve()
    except GateError as error:
        old.record(error)
        return Return(
            "NOTHING SERVES %s NOW: the release before it, %s, did not come back either: %s"
            % (old.name, old.release.id, error),
            old.masked(error.log),
        )
    return Return("The release before it, %s, serves again." % old.release.id, [])


def describe(gate: Gate, error: GateError, back: Return) -> Dict[str, Any]:
    """A release that does not serve, for the controller, which finds the cause in the logs.

    what: what was seen; after: what became of it; where: where to look; log, after_log: what this release and
    the one before it have written.
    """
    return {
        "name": gate.name,
        "release": gate.release.id,
        "kind": error.kind,
        "stage": error.stage,
        "what": "%s: release %s does not serve: %s" % (gate.name, gate.release.id, error),
        "after": back.text,
        "where": "Its log: journalctl -t %s; kept in %s"
        % (gate.service.container, gate.store.path(gate.release.id, FAILURE_FILE)),
        "log": gate.masked(error.log),
        "after_log": back.log,
    }
