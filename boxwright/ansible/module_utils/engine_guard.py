"""Stands in front of an engine's routes, inside its server: without the key, none answers but its health.

An engine's own check covers /v1 alone: vLLM's /invocations completes, and /tokenize and /metrics tell, for
anybody who reaches the port. This file is put into the container as it is, and loaded by the engine's option
for middleware; it must need nothing but Python.
"""

from __future__ import annotations

import hmac
import os
from typing import Any, Awaitable, Callable, Dict

#: Paths that answer to anybody: they tell nothing but whether the engine is well.
OPEN = ("/health", "/ping")
#: Variables of the container: the key, and further paths that were declared to be open, space between them.
KEY, OPEN_PATHS = "VLLM_API_KEY", "BOXWRIGHT_OPEN_PATHS"
_REFUSAL = b'{"error": {"message": "Unauthorized: send the key as a Bearer token", "code": 401}}'

Receive = Callable[[], Awaitable[Dict[str, Any]]]
Send = Callable[[Dict[str, Any]], Awaitable[None]]


class Guard:
    """ASGI middleware. Raises KeyError where the container has no key: then nothing is served."""

    def __init__(self, app: Callable[[Dict[str, Any], Receive, Send], Awaitable[None]]) -> None:
        self._app = app
        self._wanted = b"bearer " + os.environ[KEY].encode("ascii")
        self._open = (*OPEN, *os.environ.get(OPEN_PATHS, "").split())

    async def __call__(self, scope: Dict[str, Any], receive: Receive, send: Send) -> None:
        """Hand a request on, or turn it away."""
        if scope["type"] not in ("http", "websocket") or self._may(scope):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            headers = [(b"content-type", b"application/json"), (b"www-authenticate", b"Bearer")]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": _REFUSAL})

    def _may(self, scope: Dict[str, Any]) -> bool:
        # A browser asks by OPTIONS, without the key, whether it may ask with it.
        if scope.get("method") == "OPTIONS" or scope["path"] in self._open:
            return True
        given = [value for name, value in scope["headers"] if name.lower() == b"authorization"]
        if len(given) != 1:
            return False
        scheme, _, key = given[0].partition(b" ")
        return hmac.compare_digest(scheme.lower() + b" " + key.strip(), self._wanted)
