"""Asking an engine through its OpenAI-compatible endpoint: model listed, answer given, key wanted."""

from __future__ import annotations

import http.client
import json
import socket
import time
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ansible.module_utils.command import read

_LARGEST = 4 << 20
CHAT = "/v1/chat/completions"
#: The counters of drafted and accepted tokens, where a plan does not say.
DRAFTS = ("vllm:spec_decode_num_draft_tokens_total", "vllm:spec_decode_num_accepted_tokens_total")


class ProbeError(Exception):
    """A request without a usable reply. kind: down, status, garbled or slow; status: of HTTP, if any."""

    def __init__(self, kind: str, text: str, status: Optional[int] = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.status = status


class Answer(NamedTuple):
    """A chat completion. text: what the model said, or its reasoning where it got no further."""

    text: str
    seconds: float
    usage: Dict[str, Any]
    finish_reason: Optional[str]


class Endpoint:
    """One engine's endpoint as reached from its own host."""

    def __init__(self, bind: str, port: int, key: Optional[str] = None) -> None:
        self.host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(bind, bind)  # not bound to: asked there
        self.port = port
        self.key = key

    def models(self, timeout: float = 10, with_key: bool = True) -> List[str]:
        """The names of the models it serves."""
        return [str(entry.get("id")) for entry in self._listed(timeout, with_key)]

    def longest(self, model: str, timeout: float = 10) -> Optional[int]:
        """Tokens that a served model takes at most, by its own word; None where it does not say."""
        entries = [entry for entry in self._listed(timeout, True) if entry.get("id") == model]
        found = entries[0].get("max_model_len") if entries else None
        return found if isinstance(found, int) and found > 0 else None

    def _listed(self, timeout: float, with_key: bool) -> List[Dict[str, Any]]:
        document = self._call("GET", "/v1/models", None, timeout, with_key)
        data = document.get("data")
        if not isinstance(data, list):
            raise ProbeError("garbled", "/v1/models holds no list of models: %s" % excerpt(document))
        return [entry for entry in data if isinstance(entry, dict)]

    def wants_key(self, timeout: float = 10) -> bool:
        """Whether a request without the key is turned away."""
        try:
            self.models(timeout, with_key=False)
        except ProbeError as error:
            if error.status in (401, 403):
                return True
            raise
        return False

    def chat(self, model: str, prompt: str, max_tokens: int, timeout: float) -> Answer:
        """Ask one question, at temperature 0. An empty answer is a ProbeError of kind garbled."""
        started = time.monotonic()
        document, choice = self.complete(model, prompt, max_tokens, timeout)
        said = reasoning_of(choice["message"])
        said = choice["message"].get("content") or said
        if not isinstance(said, str) or not said.strip():
            raise ProbeError("garbled", "the answer is empty: %s" % excerpt(document))
        usage = document.get("usage")
        return Answer(
            said.strip(),
            round(time.monotonic() - started, 2),
            usage if isinstance(usage, dict) else {},
            choice.get("finish_reason"),
        )

    def complete(
        self, model: str, prompt: str, max_tokens: int, timeout: float, **more: Any
    ) -> Tuple[Dict[str, Any], Dict[str, Any]]:
        """The whole reply to one question, and its first choice, which has a message."""
        body = dict(_question(model, prompt, max_tokens), stream=False, **more)
        document = self._call("POST", CHAT, body, timeout)
        try:
            choice = document["choices"][0]
            choice["message"].get("content")
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise ProbeError("garbled", "the reply holds no message: %s" % excerpt(document)) from error
        return document, choice

    def stream(self, model: str, prompt: str, max_tokens: int, timeout: float) -> Tuple[str, int]:
        """Ask one question and have the answer streamed: its text, and in how many parts it came."""
        body = dict(_question(model, prompt, max_tokens), stream=True)
        status, text = self._request("POST", CHAT, body, timeout, True)
        if status != 200:
            raise ProbeError("status", "a stream was answered HTTP %d: %s" % (status, _message(text)), status)
        events = [line[len("data:") :].strip() for line in text.splitlines() if line.startswith("data:")]
        if not events or events[-1] != "[DONE]":
            raise ProbeError("garbled", "the stream does not end as one: %s" % text[-300:])
        parts = []
        for event in events[:-1]:
            try:
                choices = json.loads(event).get("choices") or [{}]
                delta = choices[0].get("delta") or {}
            except (ValueError, AttributeError, TypeError, IndexError, KeyError) as error:
                raise ProbeError("garbled", "the stream holds what is no event: %s" % event[:300]) from error
            part = delta.get("content") or reasoning_of(delta)
            if part:
                parts.append(str(part))
        if not "".join(parts).strip():
            raise ProbeError("garbled", "the stream holds no text: %s" % text[:300])
        return "".join(parts).strip(), len(parts)

    def post(self, path: str, body: Dict[str, Any], timeout: float) -> Any:
        """The JSON that a request is answered with."""
        return self._json("POST", path, body, timeout, True)

    def status_without_key(self, path: str, timeout: float = 10) -> int:
        """The HTTP status of a path that is asked without the key."""
        return self._request("GET", path, None, timeout, False)[0]

    def metrics(self, timeout: float = 10) -> str:
        """The engine's counters as Prometheus text."""
        return self._request("GET", "/metrics", None, timeout, True)[1]

    def _call(
        self, method: str, path: str, body: Optional[Dict[str, Any]], timeout: float, with_key: bool = True
    ) -> Dict[str, Any]:
        document = self._json(method, path, body, timeout, with_key)
        if not isinstance(document, dict):
            raise ProbeError("garbled", "%s answered %s" % (path, excerpt(document)))
        return document

    def _json(
        self, method: str, path: str, body: Optional[Dict[str, Any]], timeout: float, with_key: bool
    ) -> Any:
        status, text = self._request(method, path, body, timeout, with_key)
        if status != 200:
            raise ProbeError("status", "%s answered HTTP %d: %s" % (path, status, _message(text)), status)
        try:
            return json.loads(text)
        except ValueError as error:
            raise ProbeError("garbled", "%s answered what is no JSON: %s" % (path, text[:200])) from error

    def _request(
        self, method: str, path: str, body: Optional[Dict[str, Any]], timeout: float, with_key: bool
    ) -> Tuple[int, str]:
        # Not urllib: a proxy of the host's environment has no part in asking the host itself.
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        headers = {"Accept": "application/json"}
        if with_key and self.key:
            headers["Authorization"] = "Bearer " + self.key
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            response = connection.getresponse()
            return response.status, response.read(_LARGEST).decode("utf-8", "replace")
        except socket.timeout as error:  # TimeoutError itself since Python 3.10
            raise ProbeError("slow", "%s gave no answer within %g s" % (path, timeout)) from error
        except (OSError, http.client.HTTPException) as error:
            raise ProbeError(
                "down", "%s port %d: %s" % (self.host, self.port, error or type(error).__name__)
            ) from error
        finally:
            connection.close()


def endpoint_of(state: Dict[str, Any]) -> Endpoint:
    """A release's endpoint, asked with its key, without which only its health answers."""
    key = (read(state.get("key_file") or "") or "").strip()
    return Endpoint(state["bind"], state["port"], key)


def reasoning_of(message: Dict[str, Any]) -> str:
    """What a model thought before it answered, by either name that engines have for it."""
    found = message.get("reasoning_content") or message.get("reasoning") or ""
    return found if isinstance(found, str) else ""


def counted(metrics: str, names: Sequence[str]) -> Optional[int]:
    """The sum of some counters or gauges over an engine's processes; None where it has none of them."""
    total = None
    for line in metrics.splitlines():
        name, _, value = line.rpartition(" ")
        if name.partition("{")[0] in names:
            try:
                total = (total or 0.0) + float(value)
            except ValueError:
                continue
    return None if total is None else int(total)


def drafts(metrics: str, names: Sequence[str] = DRAFTS) -> Optional[Tuple[int, int]]:
    """Drafted and accepted tokens so far, of all the engine's processes; None where it does not draft.

    names: of the counters of drafted and of accepted tokens.
    """
    drafted, accepted = names
    count = counted(metrics, [drafted])
    return None if count is None else (count, counted(metrics, [accepted]) or 0)


def _question(model: str, prompt: str, max_tokens: int) -> Dict[str, Any]:
    return {
        "model": model,
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": max_tokens,
        "temperature": 0,
    }


def _message(text: str) -> str:
    """What an error reply says: OpenAI's, vLLM's and FastAPI's shapes, or its beginning."""
    try:
        document = json.loads(text)
    except ValueError:
        return text.strip()[:300]
    error = document.get("error", document) if isinstance(document, dict) else document
    if isinstance(error, dict):
        error = error.get("message") or error.get("detail") or error
    return (error if isinstance(error, str) else json.dumps(error))[:300]


def excerpt(document: Any) -> str:
    """The beginning of a reply, for a message."""
    text = json.dumps(document)
    return text if len(text) <= 300 else text[:300] + " …"
