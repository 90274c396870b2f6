"""Asking a served model over a socket: which one it is, and its answer as it comes."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from boxwright.errors import UserError

#: Seconds for a short answer, and between two pieces of a long one: a long prompt comes before the first.
SHORT_S, PIECE_S = 30, 900
#: Longest line of a stream, in bytes; an answer's piece is some hundred.
LONGEST_LINE = 1 << 20
#: A number of tokens beyond this is none.
MOST_COUNTED = 10**12


CHAT = "/v1/chat/completions"


class Refused(UserError):
    """The endpoint answered that it does not: its words are the why."""


@dataclass
class Answer:
    """What a model answered. first_s: until its first piece came; seconds: until the last.

    tokens: of the answer, reasoning among them; prompt_tokens, cached_tokens: of the question, where it says.
    """

    text: str = ""
    reasoning: str = ""
    finish: str | None = None
    tokens: int | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    first_s: float | None = None
    seconds: float = 0.0
    stopped: bool = False

    @property
    def tokens_per_s(self) -> float | None:
        """Of the answer, from its first piece on."""
        if not self.tokens or self.tokens < 2 or self.first_s is None or self.seconds <= self.first_s:
            return None
        return (self.tokens - 1) / (self.seconds - self.first_s)

    def to_json(self) -> dict[str, Any]:
        """By stable keys."""
        rate = self.tokens_per_s
        return {**asdict(self), "tokens_per_s": None if rate is None else round(rate, 1)}


@dataclass(frozen=True)
class Piece:
    """A part of an answer, or of the reasoning before it."""

    text: str
    reasoning: bool = False


class _Connection(http.client.HTTPConnection):
    """HTTP over a socket that has a path."""

    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


@dataclass(frozen=True)
class Endpoint:
    """A deployment's endpoint. name: of the box, for messages; key: stands in a header and nowhere else."""

    name: str
    path: Path
    key: str = field(repr=False)

    def model(self) -> str:
        """The name that the model is served by. Raises UserError."""
        with closing(_Connection(self.path, SHORT_S)) as connection:
            text = self._body(self._asked(connection, "GET", "/v1/models"))
        try:
            return str(json.loads(text)["data"][0]["id"])
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise UserError("the endpoint does not say which model it serves", where=self.name) from error

    def ask(
        self, model: str, messages: Sequence[Mapping[str, str]], answer: Answer, most: int | None = None
    ) -> Generator[Piece]:
        """The answer's pieces as they come, gathered in `answer`. Closing the iterator stops the engine."""
        body: dict[str, Any] = {
            "model": model,
            "messages": list(messages),
            "stream": True,
            "stream_options": {"include_usage": True},
            **({"max_tokens": most} if most else {}),
        }
        began = time.monotonic()
        # The response has a hold on the socket, too: closed is what closes both.
        with (
            closing(_Connection(self.path, PIECE_S)) as connection,
            self._asked(connection, "POST", CHAT, body) as response,
        ):
            for event in self._events(response):
                for piece in _pieces(event, answer):
                    answer.seconds = time.monotonic() - began
                    if answer.first_s is None:
                        answer.first_s = answer.seconds
                    yield piece

    def _asked(
        self, connection: _Connection, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> http.client.HTTPResponse:
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            response = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise self._silent(error) from error
        if response.status == 404 and path == CHAT:
            raise Refused(
                "there is no talking with it: its engine has no chat",
                where=self.name,
                why="it serves embeddings (/v1/embeddings) or ranks documents (/v1/rerank)",
                ways_out=(f"./invoke verify --host {self.name} lets it answer",),
            )
        if response.status != 200:
            raise Refused(
                f"the endpoint refused (HTTP {response.status})",
                where=self.name,
                why=_reason(self._body(response)),
            )
        return response

    def _body(self, response: http.client.HTTPResponse) -> bytes:
        try:
            return response.read(LONGEST_LINE)
        except (OSError, http.client.HTTPException) as error:
            raise self._silent(error) from error

    def _events(self, response: http.client.HTTPResponse) -> Iterator[Mapping[str, Any]]:
        try:
            while line := response.readline(LONGEST_LINE):
                data = line.decode("utf-8", "replace").strip().removeprefix("data:").strip()
                if data == "[DONE]":
                    return
                if not data.startswith("{"):
                    continue
                try:
                    found = json.loads(data)
                except (ValueError, RecursionError):
                    continue
                if isinstance(found.get("error"), dict):
                    raise Refused(
                        "the engine gave its answer up", where=self.name, why=_reason(data.encode())
                    )
                yield found
        except (OSError, http.client.HTTPException) as error:
            raise self._silent(error) from error

    def _silent(self, error: Exception) -> UserError:
        return UserError(
            "its engine does not answer",
            where=self.name,
            why=str(error) or type(error).__name__,
            ways_out=(f"./invoke status --host {self.name}", f"./invoke doctor --host {self.name}"),
        )


def _pieces(event: Mapping[str, Any], answer: Answer) -> Iterator[Piece]:
    """The pieces in one event of a stream; counts and the end go into `answer`."""
    usage = event.get("usage")
    if isinstance(usage, Mapping):
        answer.tokens, answer.prompt_tokens = (
            _count(usage, "completion_tokens"),
            _count(usage, "prompt_tokens"),
        )
        details = usage.get("prompt_tokens_details")
        answer.cached_tokens = _count(details, "cached_tokens") if isinstance(details, Mapping) else None
    choices = event.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if not isinstance(choice, Mapping):
            continue
        if isinstance(choice.get("finish_reason"), str):
            answer.finish = choice["finish_reason"]
        delta = choice.get("delta")
        if not isinstance(delta, Mapping):
            continue
        # vLLM calls it `reasoning` since 0.11, before that and SGLang `reasoning_content`.
        thought = delta.get("reasoning") or delta.get("reasoning_content")
        if isinstance(thought, str) and thought:
            answer.reasoning += thought
            yield Piece(thought, reasoning=True)
        text = delta.get("content")
        if isinstance(text, str) and text:
            answer.text += text
            yield Piece(text)


def _count(value: Mapping[str, Any], name: str) -> int | None:
    found = value.get(name)
    known = isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= MOST_COUNTED
    return found if known else None


def _reason(body: bytes) -> str | None:
    """What an error says; engines put it at one of two places."""
    text = body.decode("utf-8", "replace")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text.strip()[:500] or None
    inner = found.get("error") if isinstance(found, Mapping) else None
    told = inner if isinstance(inner, Mapping) else found
    return str(told.get("message") or inner or text)[:500] if isinstance(told, Mapping) else text[:500]
