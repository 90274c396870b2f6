"""What a release that serves embeddings or ranks documents must do before it counts."""

from __future__ import annotations

import json
from typing import Any, List, Optional

from ansible.module_utils import engine_exam
from ansible.module_utils.engine_exam import Exam
from ansible.module_utils.engine_probe import ProbeError
from ansible.module_utils.engine_vectors import (
    DOCUMENTS,
    FITTING,
    RERANKING,
    Found,
    cosine,
    scores,
    vectors,
)

#: The parts in order, by the names under which they can be left out, and what each one asks for.
PARTS = {
    "meaning": "it was to tell what is near in meaning from what is not",
    "warm": "it was given long texts",
    "reference": "it was asked what this checkpoint has answered before",
    "pool": "its cache was held against the plan",
}
#: Two texts that say the same, and one that is about something else.
NEAR, ALSO_NEAR, FAR = (
    "The cat sleeps on the sofa.",
    "A cat is sleeping on a sofa.",
    "Interest rates rose by a quarter of a percent in March.",
)
QUERY = "What is the capital of France?"
#: How alike the vectors of one text must be, asked twice, or of one checkpoint in two releases. Another batch
#: or another kernel changes the last bits of a number; what garbles them changes all of it.
SAME, REFERENCE_SAME = 0.99, 0.97
#: How far the scores of one checkpoint may be apart between two releases; they lie between 0 and 1.
REFERENCE_APART = 0.2
#: Numbers of a vector that are kept to compare with.
KEPT = 512
#: Words by which is measured how many tokens a word takes.
MEASURED_WORDS = 32


class VectorExam(Exam):  # type: ignore[misc]
    """The exam of one engine that has given its first vector or its first ranking."""

    parts = PARTS
    # An engine's own check of the key covers what begins with /v1, and these answer as well.
    guarded = (*Exam.guarded, "/pooling", "/score", "/rerank")

    def meaning(self) -> None:
        """Near texts are closer than far ones, one text has one vector; the fitting document comes first."""
        if self._ranks:
            found = self._scores(QUERY, list(DOCUMENTS)).numbers
            self.found["scores"] = [round(score, 4) for score in found]
            best = max(range(len(found)), key=lambda place: found[place])
            if best != FITTING:
                raise ProbeError(
                    "garbled",
                    "asked %r it ranks %r (%.4g) before %r (%.4g)"
                    % (QUERY, DOCUMENTS[best], found[best], DOCUMENTS[FITTING], found[FITTING]),
                )
            return
        near, also, far = self._vectors([NEAR, ALSO_NEAR, FAR]).numbers
        again = self._vectors([NEAR]).numbers[0]
        if len(again) != len(near) or cosine(near, again) < SAME:
            raise ProbeError("garbled", "the same text twice has two vectors: %s" % NEAR)
        close, apart = cosine(near, also), cosine(near, far)
        self.found.update(numbers=len(near), near=round(close, 4), far=round(apart, 4))
        if close <= apart:
            raise ProbeError(
                "garbled",
                "%r is as near to %r (%.4f) as to %r (%.4f)" % (NEAR, FAR, apart, ALSO_NEAR, close),
            )

    def reference(self) -> None:
        """The same checkpoint makes the same numbers, whatever release computes them."""
        found = self._scores(QUERY, list(DOCUMENTS)) if self._ranks else self._vectors([NEAR])
        numbers: List[float] = found.numbers if self._ranks else found.numbers[0][:KEPT]
        known = _numbers(self._matter.reference)
        if known is not None:
            self._compare(numbers, known)
        self.found["reference"] = json.dumps([float("%.5g" % number) for number in numbers])

    def _compare(self, numbers: List[float], known: List[float]) -> None:
        if len(known) != len(numbers):
            raise ProbeError("garbled", "it answers %d numbers, and once %d" % (len(numbers), len(known)))
        if self._ranks:
            apart = max(abs(one - other) for one, other in zip(numbers, known))  # noqa: B905
            self.found["apart"] = round(apart, 4)
            if apart > REFERENCE_APART:
                raise ProbeError("garbled", "its scores are %s; they were %s" % (numbers, known))
            return
        alike = cosine(numbers, known)
        self.found["likeness"] = round(alike, 4)
        if alike < REFERENCE_SAME:
            raise ProbeError(
                "garbled",
                "the vector of %r is another one than the release before it made (alike by %.4f)"
                % (NEAR, alike),
            )

    def _longest(self) -> int:
        """Words that a text may have: the engine says how many tokens it takes, and reads some to compare."""
        longest = self._matter.warm_tokens
        most = self._endpoint.longest(self._model)
        if most is not None:
            longest = min(longest, most * 3 // 4)
        if longest <= 0:
            return 0
        words = engine_exam.words(min(MEASURED_WORDS, max(1, longest // 8)), 1)
        tokens = self._read(words, self._matter.question.timeout_s)
        return int(longest / max(1.0, tokens / len(words.split())))

    def _read(self, text: str, timeout: float) -> int:
        found = self._scores(QUERY, [text], timeout) if self._ranks else self._vectors([text], timeout)
        return int(found.tokens)

    @property
    def _ranks(self) -> bool:
        return bool(self._matter.question.serves == RERANKING)

    def _vectors(self, texts: List[str], timeout: Optional[float] = None) -> Found:
        return vectors(self._endpoint, self._model, texts, timeout or self._matter.question.timeout_s)

    def _scores(self, query: str, documents: List[str], timeout: Optional[float] = None) -> Found:
        limit = timeout or self._matter.question.timeout_s
        return scores(self._endpoint, self._model, query, documents, limit)


def _numbers(text: Optional[str]) -> Optional[List[float]]:
    """Numbers that were kept; None for what is none, as the words of a deployment that served text before."""
    try:
        found: Any = json.loads(text or "")
    except ValueError:
        return None
    known = isinstance(found, list) and all(isinstance(one, (int, float)) for one in found)
    return [float(one) for one in found] if known and any(found) else None
