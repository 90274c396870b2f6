"""Asking an engine that serves no text: for vectors of texts, or for scores that rank documents."""

from __future__ import annotations

import math
import time
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from ansible.module_utils.engine_probe import Answer, Endpoint, ProbeError, excerpt

EMBEDDINGS, RERANKING = "embeddings", "reranking"
#: Both engines have these two, of every release.
EMBED, RERANK = "/v1/embeddings", "/v1/rerank"
#: What is ranked for the gate's question: the one that fits stands in the middle.
DOCUMENTS = (
    "Giant pandas eat bamboo.",
    "The capital of France is Paris.",
    "Interest rates rose by a quarter of a percent in March.",
)
FITTING = 1
#: Numbers of a vector that are shown.
_SHOWN = 3


class Found(NamedTuple):
    """numbers: a vector for each text, or a score for each document. tokens: read, 0 where it is not said."""

    numbers: List[Any]
    tokens: int


def first_answer(endpoint: Endpoint, model: str, serves: str, prompt: str, timeout: float) -> Answer:
    """The answer to the gate's question of a deployment that serves no text. Raises ProbeError."""
    started = time.monotonic()
    if serves == RERANKING:
        found = scores(endpoint, model, prompt, DOCUMENTS, timeout)
        order = sorted(range(len(DOCUMENTS)), key=lambda place: -found.numbers[place])
        text = "; ".join("%.3g: %s" % (found.numbers[place], DOCUMENTS[place]) for place in order)
    else:
        found = vectors(endpoint, model, [prompt], timeout)
        vector = found.numbers[0]
        begins = ", ".join("%.4f" % number for number in vector[:_SHOWN])
        text = "a vector of %d numbers: %s, …" % (len(vector), begins)
    usage = {"prompt_tokens": found.tokens} if found.tokens else {}
    return Answer(text, round(time.monotonic() - started, 2), usage, None)


def vectors(endpoint: Endpoint, model: str, texts: Sequence[str], timeout: float) -> Found:
    """A vector for each text, all of one length, finite and not zero. Raises ProbeError."""
    body = {"model": model, "input": list(texts), "encoding_format": "float"}
    document = endpoint.post(EMBED, body, timeout)
    found = _by_index(document, "data", len(texts))
    listed = [_vector(entry.get("embedding"), document) for entry in found]
    if len({len(vector) for vector in listed}) != 1:
        raise ProbeError("garbled", "its vectors have %s numbers" % sorted({len(one) for one in listed}))
    return Found(listed, _tokens(document))


def scores(endpoint: Endpoint, model: str, query: str, documents: Sequence[str], timeout: float) -> Found:
    """The score of each document, in the order in which they were given. Raises ProbeError."""
    body = {"model": model, "query": query, "documents": list(documents)}
    document = endpoint.post(RERANK, body, timeout)
    # SGLang answers with the bare list, and says `score`.
    found = _by_index(document, "results", len(documents))
    listed = [_number(entry.get("relevance_score", entry.get("score")), document) for entry in found]
    return Found(listed, _tokens(document))


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """How alike two vectors of one length are, -1 to 1."""
    product = math.fsum(a * b for a, b in zip(one, other))  # noqa: B905
    return product / (math.hypot(*one) * math.hypot(*other))


def _by_index(document: Any, name: str, count: int) -> List[Dict[str, Any]]:
    """The entries of a reply in the order of what was asked."""
    entries = document.get(name) if isinstance(document, dict) else document
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ProbeError("garbled", "the reply holds no %s: %s" % (name, excerpt(document)))
    places = [entry.get("index") for entry in entries]
    if (
        sorted(place for place in places if isinstance(place, int)) != list(range(count))
        or len(places) != count
    ):
        raise ProbeError("garbled", "%d were asked about, and the reply has %s" % (count, places[:20]))
    return sorted(entries, key=lambda entry: int(entry["index"]))


def _vector(value: Any, document: Any) -> List[float]:
    if not isinstance(value, list) or not value:
        raise ProbeError("garbled", "the reply holds no vector: %s" % excerpt(document))
    vector = [_number(number, document) for number in value]
    if not any(vector):
        raise ProbeError("garbled", "every number of its vector is 0")
    return vector


def _number(value: Any, document: Any) -> float:
    # What is not a number in the engine is null in some replies, and NaN in others.
    number: Optional[float] = (
        value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    )
    if number is None or not math.isfinite(number):
        raise ProbeError("garbled", "%r stands where a number should: %s" % (value, excerpt(document)))
    return float(number)


def _tokens(document: Any) -> int:
    usage = document.get("usage") if isinstance(document, dict) else None
    usage = usage if isinstance(usage, dict) else {}
    said = usage.get("prompt_tokens") or usage.get("total_tokens")
    return said if isinstance(said, int) else 0
