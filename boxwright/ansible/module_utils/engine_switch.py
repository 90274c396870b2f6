"""From one release of a deployment to the next: live when it has answered, back when it has not."""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ansible.module_utils import engine_room, systemctl
from ansible.module_utils.command import read, write
from ansible.module_utils.docker_api import Docker, DockerError
from ansible.module_utils.engine_drain import busy, close, drains_itself, until_quiet
from ansible.module_utils.engine_exam import Exam, Matter
from ansible.module_utils.engine_probe import Answer, endpoint_of
from ansible.module_utils.engine_service import Service
from ansible.module_utils.engine_store import FAILURE_FILE, Release, Store, checkpoint
from ansible.module_utils.engine_vector_exam import VectorExam
from ansible.module_utils.engine_watch import GateError, Watch, question_of
from ansible.module_utils.masking import mask
from ansible.module_utils.progress import Progress

#: Lines of a failed release's log that are kept beside it: an engine's cause stands far above its end.
KEPT_LOG = 2000


class Gate:
    """One deployment on its way to a release. thorough: it has to pass the whole exam, not only to answer."""

    def __init__(
        self,
        plan: Dict[str, Any],
        release: Release,
        params: Dict[str, Any],
        docker: Docker,
        thorough: bool = True,
    ) -> None:
        self.plan, self.release, self.params, self.thorough = plan, release, params, thorough
        self.name = release.state["name"]
        self.service = Service(self.name, docker)
        self.store = Store(params["root_dir"], self.name)
        self.progress = Progress(params["progress_file"])
        self.reasons = self.service.lacks(release)
        self.overrides = self.service.overrides()
        self.found: Dict[str, Any] = {}
        #: Why the failure of this release could not be kept beside it.
        self.unrecorded = ""
        # One that is loading since a boot has said how far it is before anybody watched.
        self.watch = self._watch()

    def serve(self) -> Dict[str, Any]:
        """Start what must be started, wait, examine, promote. Raises GateError."""
        before = self.store.link("current")
        with self._of_the_host():
            started, answer = self._bring(before)
            promoted = self._promote()
        return dict(
            self._seen(started, answer),
            before=before,
            previous=before if promoted else self.store.link("previous"),
            drifted=started and before == self.release.id,
            changed=started or promoted,
        )

    def try_out(self) -> Dict[str, Any]:
        """Start it in the place of what runs and examine it, without promoting it.

        Raises GateError, systemctl.UnitError.
        """
        self.refuse_overridden()
        with self._of_the_host():
            if self.reasons and self.service.install(self.release):
                systemctl.call("daemon-reload")
            started, answer = self._bring(self.store.link("current"))
        return dict(self._seen(started, answer), changed=started)

    def _bring(self, current: Optional[str]) -> Tuple[bool, Answer]:
        """Start it where it must be, and have it examined. current: the release that counts."""
        if not self.reasons:
            try:
                # One that runs without having been promoted was left by a run that did not come to its end.
                return False, self._ask() if current == self.release.id else self._prove()
            except GateError as error:
                # What answered once and does not any more is started once more before it is called broken.
                self.reasons.append(str(error))
        self._start()
        self._until_listed()
        self.watch.give_way()
        return True, self._prove()

    def _seen(self, started: bool, answer: Answer) -> Dict[str, Any]:
        return {
            "name": self.name,
            "release": self.release.id,
            "started": started,
            "reasons": self.reasons,
            "ready_seconds": self.watch.seconds if started else 0,
            "answer": answer.text,
            "seconds": answer.seconds,
            "usage": answer.usage,
            "exam": self.found,
            "drafts": self.found.get("drafts"),
        }

    def look(self) -> Dict[str, Any]:
        """What a run would do, without doing it; one that runs as declared is asked."""
        self.reasons += self.overridden()
        found: Dict[str, Any] = {"name": self.name, "release": self.release.id, "reasons": self.reasons}
        if not self.reasons:
            try:
                answer = self._ask()
                found.update(answer=answer.text, seconds=answer.seconds, usage=answer.usage)
            except GateError as error:
                self.reasons.append(str(error))
        drifted = bool(self.reasons) and self.store.link("current") == self.release.id
        return dict(found, drifted=drifted, changed=bool(self.reasons))

    @property
    def failure_path(self) -> str:
        """Where it is kept why this release failed."""
        return str(self.store.path(self.release.id, FAILURE_FILE))

    def overridden(self) -> List[str]:
        """What somebody has put beside the unit, so that systemd starts something else whatever it says."""
        return ["%s has systemd start something else than its unit says" % path for path in self.overrides]

    def refuse_overridden(self) -> None:
        """Before anything is stopped: starting it would not start it. Raises systemctl.UnitError."""
        if self.overrides:
            raise systemctl.UnitError(
                "%s: %s; nothing was stopped. Remove that file and run `systemctl daemon-reload`: what it "
                "is for can be declared (extra_args, env)" % (self.name, "; ".join(self.overridden()))
            )

    @contextmanager
    def _of_the_host(self) -> Iterator[None]:
        """What goes wrong with the host itself in the middle is a failure to serve: there is a way back."""
        try:
            yield
        except (systemctl.UnitError, DockerError, OSError) as error:
            raise GateError("host", str(error), self.watch.stage, self.watch.log) from error

    def record(self, error: GateError) -> None:
        """Keep why this release failed, and its log, beside it; where the disk is full, it is only told."""
        document = {
            "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "kind": error.kind,
            "stage": error.stage,
            "what": str(error),
            "log": self.masked(error.log[-KEPT_LOG:]),
        }
        try:
            write(self.failure_path, json.dumps(document, indent=1) + "\n", 0o600)
        except OSError as full:
            self.unrecorded = str(full)

    def masked(self, log: List[str]) -> List[str]:
        """Lines of the engine's log, without its key."""
        return [mask(line, [self._key]) for line in log]

    def stop(self) -> None:
        """Let what runs finish its requests, and stop it."""
        running = self.store.read(self.service.running_release())
        seconds = self.params["drain_seconds"]
        if running and not drains_itself(running.state):
            close(running.state)
            endpoint = endpoint_of(running.state)
            until_quiet(
                lambda: busy(endpoint),
                seconds,
                lambda count: self._tell("%d requests of release %s finish" % (count, running.id)),
            )
        elif running:
            self._tell("requests of release %s finish, for at most %d s" % (running.id, seconds))
        self.service.stop()

    @property
    def _key(self) -> str:
        return (read(self.release.state["key_file"]) or "").strip()

    def _tell(self, text: str) -> None:
        self.progress.update("%s: %s" % (self.name, text))

    def _start(self) -> None:
        """Stop what runs, see its memory free, start. Raises GateError."""
        failure, kind = "", "crashed"
        try:
            self.stop()
            lack = engine_room.wait(engine_room.wanted(self.plan), self._tell)
            if lack and self.thorough:
                kind, failure = "full", "its cards have no room for it: %s" % lack
            else:
                self._tell("starting release %s" % self.release.id)
                self.service.start()
        except systemctl.UnitError as error:
            failure = str(error)
        # Only now: until it was stopped, the engine before it went on writing.
        self.watch = self._watch()
        if failure:
            raise self.watch.failure(kind, failure)

    def _ask(self) -> Answer:
        """The model is listed, the container sees its cards, and the gate's question is answered."""
        self._until_listed()
        self._see_cards()
        answer: Answer = self.watch.ask(self.plan["served_name"], question_of(self.plan.get("gate")))
        return answer

    def _until_listed(self) -> None:
        self.watch.until_listed(
            self.plan["served_name"], self.params["start_timeout_s"], self.params["stage_timeouts_s"]
        )

    def _prove(self) -> Answer:
        """The same, and all that makes a release fit to be promoted."""
        answer = self._ask()
        if self.thorough:
            key = checkpoint(self.release.state)
            matter = Matter(
                plan=self.plan,
                question=question_of(self.plan.get("gate")),
                reference=self.store.reference(key) if key else None,
                warm_tokens=self.params["warm_tokens"],
                skipped=self.params["gate_skip"],
            )
            kind = Exam if matter.question.serves == "text" else VectorExam
            exam = kind(
                self.watch,
                endpoint_of(self.release.state),
                matter,
                lambda part: self._tell("examining (%s)" % part),
            )
            self.found = exam.run(answer)
        # Any other tool on the host may do it any day: containers that lose their cards by it are no good.
        systemctl.call("daemon-reload")
        self._see_cards()
        return answer

    def _see_cards(self) -> None:
        if self.release.state["access"] != "none":
            wrong = self.service.cards()
            if wrong:
                raise self.watch.failure("cards", "the container does not see its cards: %s" % wrong)

    def _promote(self) -> bool:
        """Make it the release that is started at every boot, and the current one; True when it was not."""
        # In this order: a run that is killed in between leaves one that has answered to be started at boot.
        if self.service.keep(self.release):
            systemctl.call("daemon-reload")
        enabled = self.service.enable()
        promoted = self.store.promote(self.release.id)
        if os.path.exists(self.failure_path):
            os.unlink(self.failure_path)
        key = checkpoint(self.release.state)
        if key and "reference" in self.found:
            self.store.remember(key, self.found["reference"])
        elif key and "reference" in self.params["gate_skip"]:
            self.store.remember(key, None)
        return bool(promoted or enabled)

    def _present(self) -> bool:
        try:
            return bool(self.service.running_release() == self.release.id)
        except DockerError:
            # Docker may be starting anew: what becomes of the engine, its unit knows.
            return False

    def _watch(self) -> Watch:
        return Watch(
            self.name,
            endpoint_of(self.release.state),
            self.service.state,
            self._present,
            systemctl.Journal.of_start(self.service.state().invocation).new,
            self.progress,
        )
