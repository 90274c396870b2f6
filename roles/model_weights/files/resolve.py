"""Asks a hub, with its official client, where files of a model revision lie; run by the module model_store.

Reads lines of JSON from standard input. The first is the job: endpoint, repo, revision, workers; each other
one has `files`, the paths to be looked up. The hub's token, if any, comes in HF_TOKEN. Says on standard
output, one JSON object a line: "ready" once the hub has let it in, "waiting" while the hub asks for that,
"file" with url, size and etag, or "error" with a kind (and the path, where it is about one). Ends with its
input.
"""

from __future__ import annotations

import concurrent.futures
import json
import re
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar
from urllib.parse import urljoin

from huggingface_hub import HfApi, get_hf_file_metadata, hf_hub_url
from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RevisionNotFoundError
from huggingface_hub.utils import disable_progress_bars

#: Longest wait, in seconds, that a hub may ask for before the run gives up; pauses before asking again
#: after a fault of the hub's or the line's own.
PATIENCE_S = 600
PAUSES_S = (0.5, 1, 2)

Result = TypeVar("Result")
_speaking = threading.Lock()


def say(**event: Any) -> None:
    """One event for the module."""
    with _speaking:
        sys.stdout.write(json.dumps(event) + "\n")
        sys.stdout.flush()


def patiently(ask: Callable[[], Result]) -> Result:
    """The answer to a question; asked again as long as the hub wishes, or after a fault of its own."""
    waited, pauses = 0.0, list(PAUSES_S)
    while True:
        try:
            return ask()
        except Exception as error:
            pause = asked_pause(error)
            if pause is None and kind_of(error)["kind"] in ("server", "timeout", "unreachable") and pauses:
                pause = pauses.pop(0)
            elif pause is not None and waited + pause <= PATIENCE_S:
                say(event="waiting", seconds=pause)
            else:
                raise
            time.sleep(pause)
            waited += pause


def asked_pause(error: BaseException) -> float | None:
    """Seconds that a 429 asks to wait; None for another answer."""
    if not isinstance(error, HfHubHTTPError) or error.response.status_code != 429:
        return None
    told = re.fullmatch(r"\d+", error.response.headers.get("Retry-After", "").strip())
    return float(told.group()) if told else 30.0


def causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what led to it, outermost first."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def kind_of(error: BaseException) -> dict[str, Any]:
    """The error in one word, with the HTTP status where there was one."""
    chain = list(causes(error))
    for cause in chain:
        response = getattr(cause, "response", None)
        status = getattr(response, "status_code", None)
        if response is not None and status is not None:
            return {
                "kind": http_kind(cause, status),
                "status": status,
                "code": response.headers.get("X-Error-Code", ""),
                "retry_after": response.headers.get("Retry-After", ""),
            }
    # By name, as the client's HTTP library has changed more than once.
    names = {kind.__name__ for cause in chain for kind in type(cause).__mro__}
    text = " ".join(str(cause) for cause in chain)
    if any(isinstance(cause, socket.gaierror) for cause in chain) or re.search(
        r"Name or service not known|Temporary failure in name resolution|No address associated", text
    ):
        return {"kind": "dns"}
    if "CERTIFICATE_VERIFY_FAILED" in text or "certificate verify failed" in text:
        return {"kind": "tls"}
    if any(isinstance(cause, ssl.SSLError) for cause in chain):
        return {"kind": "no-tls"}
    if "ProxyError" in names:
        return {"kind": "proxy"}
    if names & {"TimeoutException", "TimeoutError"}:
        return {"kind": "timeout"}
    if names & {"TransportError", "ConnectionError"}:
        return {"kind": "unreachable"}
    return {"kind": "unexpected"}


def http_kind(error: BaseException, status: int) -> str:
    """The kind of an answer that refuses."""
    if isinstance(error, GatedRepoError):
        return "gated"
    if isinstance(error, RevisionNotFoundError):
        return "no-revision"
    known = {
        401: "unauthorized",
        403: "forbidden",
        404: "not-found",
        407: "proxy",
        416: "server",
        429: "rate-limited",
    }
    return known.get(status, "server" if status >= 500 else "unexpected")


def complain(error: BaseException, **more: Any) -> None:
    """Tell an error by kind; the module has the words for each."""
    # The text serves only the kinds nobody foresaw.
    say(event="error", detail=f"{type(error).__name__}: {error}", **kind_of(error), **more)


def look_up(job: dict[str, Any], path: str) -> None:
    """Say where one file lies."""
    url = hf_hub_url(job["repo"], path, revision=job["revision"], endpoint=job["endpoint"])
    try:
        found = patiently(lambda: get_hf_file_metadata(url, timeout=20, endpoint=job["endpoint"]))
    except Exception as error:
        complain(error, path=path)
        return
    say(event="file", path=path, url=urljoin(url, found.location), size=found.size, etag=found.etag)


def main() -> int:
    """Answer until the input ends."""
    disable_progress_bars()
    job = json.loads(sys.stdin.readline())
    api = HfApi(endpoint=job["endpoint"])
    try:
        patiently(lambda: api.model_info(job["repo"], revision=job["revision"], timeout=20))
    except Exception as error:
        complain(error)
        return 1
    say(event="ready")
    with concurrent.futures.ThreadPoolExecutor(max_workers=job["workers"]) as pool:
        for line in sys.stdin:
            for path in json.loads(line)["files"]:
                pool.submit(look_up, job, path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
