"""Stands in front of an engine's routes, inside its server: without the key, none answers but its health.

An engine's own check covers /v1 alone: vLLM's /invocations completes, and /tokenize and /metrics tell, for
anybody who reaches the port. And an engine that is told to end answers requests that it has not begun at
once and with nothing (vLLM: HTTP 200, finish_reason "abort"): before that, new ones are told to come back
here, and the host sees by a lock when those that run are through.

This file is put into the container as it is, and loaded by the engine's option for middleware; it must need
nothing but Python.
"""

from __future__ import annotations

import fcntl
import hmac
import os
from typing import Any, Awaitable, Callable, Dict, Optional, Tuple

#: Paths that answer to anybody: they tell nothing but whether the engine is well.
OPEN = ("/health", "/ping")
#: Variables of the container: the key, and further paths that were declared to be open, space between them.
KEY, OPEN_PATHS = "VLLM_API_KEY", "BOXWRIGHT_OPEN_PATHS"
#: While the host has this file there, the engine takes no new work: it is about to end.
CLOSING = "/cache/boxwright-closing"
#: Every request that is worked on holds a shared lock of this file: who gets it alone finds none. The kernel
#: keeps count, over all processes of a server, and of those that died, too.
WORKING = "/cache/boxwright-working"
#: Methods of requests that are work; the others ask how it fares, which is asked until the end.
_WORK = ("POST", "PUT", "PATCH", "DELETE")
#: Seconds after which it makes sense to ask again: the next engine has begun to start by then.
_RETRY_AFTER = b"15"
_CLOSED = b'{"error": {"message": "This model is being restarted: try again soon", "code": 503}}'
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
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
        elif not self._may(scope):
            await _refuse(scope, send, 401, 1008, _REFUSAL, (b"www-authenticate", b"Bearer"))
        elif not _is_work(scope):
            await self._app(scope, receive, send)
        else:
            await self._work(scope, receive, send)

    async def _work(self, scope: Dict[str, Any], receive: Receive, send: Send) -> None:
        held = _hold()
        try:
            # In this order: a request that saw no sign of the end is one that the end waits for.
            if not os.path.exists(CLOSING):
                await self._app(scope, receive, send)
                return
        finally:
            if held is not None:
                os.close(held)
        await _refuse(scope, send, 503, 1012, _CLOSED, (b"retry-after", _RETRY_AFTER))

    def _may(self, scope: Dict[str, Any]) -> bool:
        # A browser asks by OPTIONS, without the key, whether it may ask with it.
        if scope.get("method") == "OPTIONS" or scope["path"] in self._open:
            return True
        given = [value for name, value in scope["headers"] if name.lower() == b"authorization"]
        if len(given) != 1:
            return False
        scheme, _, key = given[0].partition(b" ")
        return hmac.compare_digest(scheme.lower() + b" " + key.strip(), self._wanted)


def _hold() -> Optional[int]:
    """A share of the lock, held until it is closed; None where there is none to be had: work goes before."""
    try:
        descriptor = os.open(WORKING, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _is_work(scope: Dict[str, Any]) -> bool:
    return scope["type"] == "websocket" or scope["method"] in _WORK


async def _refuse(
    scope: Dict[str, Any], send: Send, status: int, code: int, body: bytes, header: Tuple[bytes, bytes]
) -> None:
    """Turn a request away: by an HTTP status, or a code where it is to become a WebSocket."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": code})
        return
    headers = [(b"content-type", b"application/json"), header]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
