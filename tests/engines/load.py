"""A steady load on an endpoint, and what became of each request."""

import http.client
import itertools
import json
import threading
import time
from collections import Counter
from typing import NamedTuple

#: Seconds between a short request's end and the next, and before one that was turned away is tried again.
PAUSE_S, AGAIN_S = 0.2, 0.2
#: Tokens that each kind of request asks for. A processor takes seconds for a long or even a short answer: how
#: long nobody was answered is told by those that are through with their first token.
TOKENS = {"probe": 1, "short": 12, "long": 96}


class Request(NamedTuple):
    """One request. outcome: answered, turned away (HTTP 503), refused (no connection), or broken off."""

    kind: str
    sent: float
    ended: float
    outcome: str
    said: str
    retry_after: str | None = None


class Load:
    """Three clients of one endpoint: for a token, for a short answer, for a long one that is streamed."""

    def __init__(self, address, port, key, model):
        self._address, self._port, self._key, self._model = address, port, key, model
        self.requests = []
        self._ended = float("inf")
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._repeat, args=(kind,), daemon=True) for kind in TOKENS]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._ended = time.time()
        self._over.set()
        for thread in self._threads:
            thread.join(180)

    def _repeat(self, kind):
        while not self._over.is_set():
            request = self.ask(kind)
            self.requests.append(request)
            time.sleep(PAUSE_S if request.outcome == "answered" else AGAIN_S)

    def ask(self, kind):
        """Send one request and wait for its end."""
        sent = time.time()
        connection = http.client.HTTPConnection(self._address, self._port, timeout=5)
        try:
            connection.connect()
        except OSError as error:
            return Request(kind, sent, time.time(), "refused", repr(error))
        try:
            connection.sock.settimeout(120)
            connection.request("POST", "/v1/chat/completions", self._body(kind), self._headers)
            response = connection.getresponse()
            text = response.read().decode()
        except (OSError, http.client.HTTPException) as error:
            return Request(kind, sent, time.time(), "broken off", repr(error))
        finally:
            connection.close()
        ended = time.time()
        if response.status == 503:
            return Request(kind, sent, ended, "turned away", text, response.getheader("Retry-After"))
        whole = response.status == 200 and _whole(kind, text)
        return Request(kind, sent, ended, "answered" if whole else "broken off", text[-300:])

    @property
    def _headers(self):
        return {"Content-Type": "application/json", "Authorization": f"Bearer {self._key}"}

    def _body(self, kind):
        prompt = "Tell a long story about a fox." if kind == "long" else "Name the capital city of France."
        body = {
            "model": self._model,
            "messages": [{"role": "user", "content": prompt}],
            "temperature": 0,
            "max_tokens": TOKENS[kind],
            "stream": kind == "long",
        }
        # So long that it is surely running when its engine is to end.
        return json.dumps(body | ({"ignore_eos": True} if kind == "long" else {}))

    def outcomes(self):
        """How many requests had which outcome."""
        return dict(Counter(request.outcome for request in self.requests))

    def answered(self):
        """The requests that were answered so far."""
        return [request for request in list(self.requests) if request.outcome == "answered"]

    def gap(self):
        """The longest time without an answer: its beginning, and its end.

        What was still at work when the clients were told to stop had nobody beside it, and does not count.
        """
        ends = sorted(request.ended for request in self.answered() if request.ended <= self._ended)
        return max(itertools.pairwise(ends), key=lambda pair: pair[1] - pair[0])


def _whole(kind, text):
    """Whether an answer came to its end."""
    if kind != "long":
        choice = json.loads(text)["choices"][0]
        told = choice["message"]["content"] if kind == "probe" else "Paris" in choice["message"]["content"]
        return choice["finish_reason"] in ("stop", "length") and bool(told)
    events = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    reasons = [json.loads(event)["choices"][0].get("finish_reason") for event in events[:-1]]
    return events[-1:] == ["[DONE]"] and [reason for reason in reasons if reason] == ["length"]
