"""Waiting for an engine: through its stages until it has answered, or until it is clear that it will not."""

from __future__ import annotations

import re
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ansible.module_utils.engine_log import Stages
from ansible.module_utils.engine_probe import DRAFTS, Answer, Endpoint, ProbeError, drafts
from ansible.module_utils.engine_vectors import first_answer
from ansible.module_utils.progress import Progress
from ansible.module_utils.systemctl import UnitState

#: Seconds a stage may last before a start counts as hung; a crash is seen at once. Starting is Python reading
#: gigabytes of libraries from a cold disk, loading is bounded by that disk too (50 GB at 60 MB/s), compiling
#: by a cold cache on few cores.
STAGE_TIMEOUTS_S = {
    "starting": 600,
    "loading": 900,
    "compiling": 900,
    "capturing": 600,
    "warming": 600,
    "listening": 120,
}
POLL_S = 1.0
#: Seconds in which who has waited for an engine is answered before it is examined. Beside an exam the first
#: answer took 2.1 s, with this 1.3 s (vLLM 0.32.0 on two processor cores, three clients).
GIVE_WAY_S = 2.0
#: Drafted tokens below which nothing is said about how many are accepted.
FEWEST_DRAFTS = 20
#: Lines of the log that are kept to look for a cause in, and most characters of one.
KEPT_LINES = 5000
LONGEST_LINE = 2000


class GateError(Exception):
    """An engine that does not serve.

    kind: crashed, hung, slow, wrong-model, open, silent, unexpected, unauthorized, cards, full, garbled, host
    (its systemd, its Docker or its disk), or a part of the exam (engine_exam.PARTS).
    stage: where it was; log: what it has written, in which the controller looks for the cause.
    """

    def __init__(self, kind: str, text: str, stage: str, log: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.kind = kind
        self.stage = stage
        self.log = list(log)


class Question(NamedTuple):
    """What a release has to answer. expect: regular expression for the answer, None for any answer.

    serves: text, or what engine_vectors asks for.
    """

    prompt: str
    expect: Optional[str]
    max_tokens: int
    timeout_s: float
    serves: str = "text"


class Watch:
    """One engine while it starts. The functions given are the ways to the host; tests give their own.

    show: the unit's state now. present: whether the release's own container runs, for until then somebody
    else may be answering on the port. new_lines: what the engine has written since the last call.
    """

    def __init__(
        self,
        name: str,
        endpoint: Endpoint,
        show: Callable[[], UnitState],
        present: Callable[[], bool],
        new_lines: Callable[[], List[str]],
        progress: Progress,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.name = name
        self.log: List[str] = []
        self._endpoint = endpoint
        self._show = show
        self._present = present
        self._new_lines = new_lines
        self._progress = progress
        self._clock = clock
        self._sleep = sleep
        self._stages = Stages()
        self._began = clock()
        #: The unit's state when the engine was asked first.
        self._alive: Optional[UnitState] = None

    @property
    def stage(self) -> str:
        """Where its start is, as far as its log was read."""
        return str(self._stages.stage)

    @property
    def seconds(self) -> float:
        """How long it has been watched."""
        return round(self._clock() - self._began, 1)

    def until_listed(self, model: str, timeout_s: float, stage_timeouts_s: Dict[str, int]) -> None:
        """Wait until the engine lists the model. Raises GateError as soon as it is clear that it will not."""
        limits = dict(STAGE_TIMEOUTS_S, **stage_timeouts_s)
        first = self._show()
        stage, entered = self._stages.stage, self._clock()
        while True:
            self._refuse_if_down(first)
            # Before the log is read: that of an engine that has served for months is long.
            if self._present() and self._listed(model):
                return
            self.read_log()
            if self._stages.stage != stage:
                stage, entered = self._stages.stage, self._clock()
            self._tell(stage)
            now = self._clock()
            if now - entered > limits[stage]:
                raise self.failure(
                    "hung", "it has been %s for %d s without getting on" % (stage, now - entered)
                )
            if now - self._began > timeout_s:
                raise self.failure(
                    "slow",
                    "it was not ready within %d s (engine_start_timeout_s); it was %s" % (timeout_s, stage),
                )
            self._sleep(POLL_S)

    def give_way(self) -> None:
        """Let those be answered first who have waited for this engine."""
        self._progress.update("%s: answering those who waited" % self.name)
        self._sleep(GIVE_WAY_S)

    def ask(self, model: str, question: Question) -> Answer:
        """Have the model answer a real question. Raises GateError when it does not, or not as expected."""
        self._progress.update("%s: asking" % self.name)
        first = self._alive = self._show()
        try:
            if not self._endpoint.wants_key():
                raise self.failure("open", "it answers without the key on port %d" % self._endpoint.port)
            answer = _answer(self._endpoint, model, question)
        except ProbeError as error:
            self.refuse_if_dying(first)
            kind = "unauthorized" if error.status in (401, 403) else "silent"
            raise self.failure(kind, "the model is listed, but gave no answer: %s" % error) from error
        if question.expect and not re.search(question.expect, answer.text):
            raise self.failure(
                "unexpected",
                "asked %r it answered %r, which does not match %r"
                % (question.prompt, answer.text[:300], question.expect),
            )
        return answer

    def drafts(self, names: Sequence[str] = DRAFTS) -> Tuple[int, int]:
        """Tokens drafted and accepted so far, of an engine that is to draft. names: of its counters.

        Raises GateError when it does not draft, or drafts what is never accepted: a draft head that was lost
        or garbled in a quantized checkpoint makes every answer slower and no error (vllm PR 37667).
        """
        try:
            found = drafts(self._endpoint.metrics(), names)
        except ProbeError as error:
            raise self.failure("silent", "its counters cannot be read: %s" % error) from error
        if found is None:
            raise self.failure("drafts", "drafting is declared, and the engine counts no drafts")
        drafted, accepted = found
        if drafted >= FEWEST_DRAFTS and accepted == 0:
            raise self.failure("drafts", "it drafted %d tokens and none was accepted" % drafted)
        return drafted, accepted

    def refuse_if_dying(self, first: Optional[UnitState] = None) -> None:
        """After a request without an answer: raise GateError when the engine died of it.

        first: the unit's state before the request; left out, as it was when the engine answered first.
        """
        first = first or self._alive or self._show()
        for _ in range(5):  # it takes some seconds to end
            self.read_log()
            self._refuse_if_down(first)
            self._sleep(POLL_S)
        self.read_log()

    def _listed(self, model: str) -> bool:
        try:
            models = self._endpoint.models(timeout=5)
        except ProbeError as error:
            if error.status in (401, 403):
                raise self.failure(
                    "unauthorized",
                    "it does not take the key that is in its key file: %s" % error,
                ) from error
            return False
        if model not in models:
            raise self.failure(
                "wrong-model",
                "it serves %s, not %s" % (", ".join(models) or "nothing", model),
            )
        return True

    def _refuse_if_down(self, first: UnitState) -> None:
        state = self._show()
        if not state.down and state.restarts == first.restarts:
            return
        # The journal may get the last lines after systemd knows of the end.
        self._sleep(POLL_S)
        self.read_log()
        raise self.failure(
            "crashed", "it %s while %s, after %d s" % (state.ending, self._stages.stage, self.seconds)
        )

    def read_log(self) -> None:
        """Take in what it has written since the last time."""
        lines = self._new_lines()
        if self._endpoint.key:
            # SGLang writes its settings to its log, the key among them; what is kept here may be shown.
            lines = [line.replace(self._endpoint.key, "(the key)") for line in lines]
        self._stages.feed(lines)
        self.log = (self.log + [line[:LONGEST_LINE] for line in lines])[-KEPT_LINES:]

    def _tell(self, stage: str) -> None:
        shards = self._stages.shards if stage == "loading" else None
        text = "%s: %s" % (self.name, stage)
        if shards:
            self._progress.update(text, shards[0], shards[1], "parts")
        else:
            self._progress.update(text, self.seconds, None, "s")

    def failure(self, kind: str, text: str) -> GateError:
        """An error of this start, with the engine's log."""
        self.read_log()
        return GateError(kind, text, self._stages.stage, self.log)


def _answer(endpoint: Endpoint, model: str, question: Question) -> Answer:
    if question.serves != "text":
        found: Answer = first_answer(endpoint, model, question.serves, question.prompt, question.timeout_s)
        return found
    return endpoint.chat(model, question.prompt, question.max_tokens, question.timeout_s)


def question_of(gate: Optional[Dict[str, Any]]) -> Question:
    """The question that a deployment's plan holds."""
    gate = gate or {}
    return Question(
        prompt=gate.get("prompt") or "Say hello.",
        expect=gate.get("expect"),
        max_tokens=int(gate.get("max_tokens") or 64),
        timeout_s=float(gate.get("timeout_s") or 120),
        serves=gate.get("serves") or "text",
    )
