"""Letting an engine finish what it works on before it is stopped."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Optional

from ansible.module_utils.command import write
from ansible.module_utils.engine_probe import Endpoint, ProbeError, counted
from ansible.module_utils.engine_unit import closing_file

#: The option by which an engine finishes its requests itself when it is to end, and takes no new ones.
OWN_DRAIN = "--shutdown-timeout"
#: Gauges of requests that are worked on or wait for it, of every engine.
WORKED_ON = (
    "vllm:num_requests_running",
    "vllm:num_requests_waiting",
    "sglang:num_running_reqs",
    "sglang:num_queue_reqs",
)
POLL_S = 0.5


def drains_itself(state: Dict[str, Any]) -> bool:
    """Whether the engine of a release goes on with its requests after it was told to end (vLLM 0.18.1)."""
    words = [word.partition("=")[0] for word in state["command"]]
    return OWN_DRAIN in words


def close(state: Dict[str, Any]) -> None:
    """Have the guard of a release that runs tell new requests to come back, where it has one that does."""
    closing = closing_file(state)
    if closing:
        write(closing, "", 0o644)


def busy(endpoint: Endpoint) -> Optional[int]:
    """Requests that are worked on or wait; None where the engine does not tell."""
    try:
        requests: Optional[int] = counted(endpoint.metrics(timeout=5), WORKED_ON)
    except ProbeError:
        return None
    return requests


def until_quiet(
    count: Callable[[], Optional[int]],
    seconds: float,
    tell: Callable[[int], None],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Optional[int]:
    """Wait for a moment without requests, for engines that break them off when they are to end.

    New ones are still taken meanwhile where no guard stands between the engine and its clients. Returns how
    many requests are broken off; None where the engine does not tell.
    """
    until = clock() + seconds
    while True:
        requests = count()
        if not requests or clock() >= until:
            return requests
        tell(requests)
        sleep(POLL_S)
