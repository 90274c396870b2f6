"""Clients of a gateway, one request after another, and what became of each."""

import http.client
import json
import ssl
import threading
import time
from collections import Counter
from typing import NamedTuple

#: Seconds between a request's end and the next: two engines and what changes them share few processors.
PAUSE_S = 0.3
#: Seconds for one answer. A box that loses its power is noticed after half a minute.
PATIENCE_S = 180
#: What each client asks for: whether its answer is streamed, and tokens.
KINDS = {"stream": (True, 32), "whole": (False, 12)}


class Request(NamedTuple):
    """One request. failure: "" where its whole answer came; said: the end of what came."""

    kind: str
    sent: float
    ended: float
    failure: str
    said: str = ""

    def running(self, moment):
        """Whether it was at work then."""
        return self.sent <= moment <= self.ended


class Clients:
    """One client of each kind, for as long as the block runs."""

    def __init__(self, address, port, key, model, authority):
        self._address, self._port, self._key, self._model = address, port, key, model
        self._context = ssl.create_default_context(cafile=str(authority))
        self.requests = []
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._repeat, args=(kind,), daemon=True) for kind in KINDS]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        for thread in self._threads:
            thread.join(PATIENCE_S)

    def _repeat(self, kind):
        while not self._over.is_set():
            self.requests.append(self.ask(kind))
            time.sleep(PAUSE_S)

    def ask(self, kind):
        """Send one request and wait for its end."""
        stream, tokens = KINDS[kind]
        sent = time.time()
        connection = http.client.HTTPSConnection(
            self._address, self._port, timeout=PATIENCE_S, context=self._context
        )
        body = {
            "model": self._model,
            "messages": [{"role": "user", "content": "Tell a long story about a fox."}],
            "temperature": 0,
            "max_tokens": tokens,
            "ignore_eos": True,
            "stream": stream,
        }
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._key}"}
        text = ""
        try:
            connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read().decode()
            failure = "" if answer.status == 200 and _whole(stream, text) else f"status {answer.status}"
        except (OSError, http.client.HTTPException) as error:
            failure = repr(error)
        finally:
            connection.close()
        return Request(kind, sent, time.time(), failure, text[-300:])

    @property
    def failed(self):
        """Those that did not get their whole answer."""
        return [one for one in self.requests if one.failure]

    def figures(self):
        """How many of each kind there were, and how many of them failed."""
        return {
            "requests": dict(Counter(one.kind for one in self.requests)),
            "failed": len(self.failed),
            "slowest_s": round(max(one.ended - one.sent for one in self.requests), 1),
        }


def _whole(stream, text):
    """Whether an answer came to its end."""
    if not stream:
        choice = json.loads(text)["choices"][0]
        return choice["finish_reason"] == "length" and bool(choice["message"]["content"])
    events = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    reasons = [json.loads(event)["choices"][0].get("finish_reason") for event in events[:-1]]
    return events[-1:] == ["[DONE]"] and [reason for reason in reasons if reason] == ["length"]
