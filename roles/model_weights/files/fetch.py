"""Fetches files of one model revision with the hub's official client; run by the module model_store.

Reads one line of JSON from standard input (endpoint, repo, revision, target, files, workers, attempts) and
the hub's token, if any, from HF_TOKEN. Says on standard output, one JSON object a line, what was done:
"described" once all small files are there (it then waits for the line "go"), "file" for each verified file,
"again" for one whose bytes were wrong, at last "done" or "error" with a kind. Bytes that arrived are hashed
and flushed to the disk before a file is called done.
"""

from __future__ import annotations

import concurrent.futures
import errno
import hashlib
import json
import os
import re
import socket
import ssl
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi, hf_hub_download
from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RevisionNotFoundError
from huggingface_hub.utils import disable_progress_bars

BLOCK = 4 * 1024 * 1024
#: Longest wait, in seconds, that a hub may ask for before the run gives up.
PATIENCE_S = 600

_speaking = threading.Lock()


def say(**event: Any) -> None:
    """One event for the module."""
    with _speaking:
        sys.stdout.write(json.dumps(event) + "\n")
        sys.stdout.flush()


class WrongBytes(Exception):
    """A file whose bytes stayed wrong however often it was fetched."""

    def __init__(self, path: str, detail: str) -> None:
        super().__init__(detail)
        self.path, self.detail = path, detail


def fetch(job: dict[str, Any], file: dict[str, Any]) -> None:
    """Fetch one file and verify it; fetched again, at most `attempts` times, while its bytes are wrong."""
    path = Path(job["target"]) / file["path"]
    wrong = ""
    for attempt in range(1, job["attempts"] + 1):
        try:
            hf_hub_download(
                job["repo"],
                file["path"],
                revision=job["revision"],
                endpoint=job["endpoint"],
                local_dir=job["target"],
            )
        except OSError as error:
            if "Consistency check failed" not in str(error):
                raise
            wrong = f"the hub sent less than its {file['size']} bytes"
        else:
            found, digest = verify(path)
            wrong = difference(file, found, digest)
            if not wrong:
                say(event="file", path=file["path"], sha256=digest)
                return
        say(event="again", path=file["path"], detail=wrong, attempt=attempt)
        forget(job["target"], file["path"])
    raise WrongBytes(file["path"], wrong)


def verify(path: Path) -> tuple[int, str]:
    """Size and SHA-256 of a file, which lies safely on the disk afterwards."""
    digest = hashlib.sha256()
    with path.open("rb+", buffering=0) as stream:
        block = memoryview(bytearray(BLOCK))
        while count := stream.readinto(block):
            digest.update(block[:count])
        os.fsync(stream.fileno())
        return stream.tell(), digest.hexdigest()


def difference(file: dict[str, Any], size: int, digest: str) -> str:
    """What is wrong with the bytes, "" when nothing is."""
    if size != file["size"]:
        return f"{size} bytes arrived, the hub's record says {file['size']}"
    if file["sha256"] and digest != file["sha256"]:
        return f"its sha256 is {digest}, the hub's record says {file['sha256']}"
    return ""


def forget(target: str, path: str) -> None:
    """Remove a file and what the client noted of it, so that the client fetches it anew."""
    for name in (path, ".cache/huggingface/download/" + path + ".metadata"):
        (Path(target) / name).unlink(missing_ok=True)


def greet(job: dict[str, Any]) -> None:
    """Ask the hub for the revision, so that a refusal shows at once. Waits if the hub asks for it."""
    waited = 0.0
    while True:
        try:
            HfApi(endpoint=job["endpoint"]).model_info(job["repo"], revision=job["revision"], timeout=20)
            return
        except HfHubHTTPError as error:
            pause = asked_pause(error)
            if pause is None or waited + pause > PATIENCE_S:
                raise
            say(event="waiting", seconds=pause)
            time.sleep(pause)
            waited += pause


def asked_pause(error: HfHubHTTPError) -> float | None:
    """Seconds that a 429 asks to wait; None for another answer."""
    if error.response.status_code != 429:
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
        if isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT):
            return {"kind": "disk-full"}
    for cause in chain:
        response = getattr(cause, "response", None)
        status = getattr(response, "status_code", None)
        if status is not None:
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


def run(job: dict[str, Any]) -> None:
    """Fetch the describing files, wait for leave, fetch the weights."""
    greet(job)
    weights = (".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
    small = [file for file in job["files"] if not file["path"].endswith(weights)]
    large = [file for file in job["files"] if file["path"].endswith(weights)]
    with concurrent.futures.ThreadPoolExecutor(max_workers=job["workers"]) as pool:
        together(pool, job, small)
        say(event="described")
        if sys.stdin.readline().strip() != "go":
            return
        together(pool, job, large)
    say(event="done")


def together(
    pool: concurrent.futures.ThreadPoolExecutor, job: dict[str, Any], files: list[dict[str, Any]]
) -> None:
    """Fetch files side by side; the first error ends it once the running ones are through."""
    futures = [pool.submit(fetch, job, file) for file in files]
    try:
        for future in concurrent.futures.as_completed(futures):
            future.result()
    except BaseException:
        for future in futures:
            future.cancel()
        raise


def main() -> int:
    """Work; the exit status is 0 when the last event is done, 1 when it is an error."""
    job = json.loads(sys.stdin.readline())
    disable_progress_bars()
    try:
        run(job)
    except WrongBytes as error:
        say(event="error", kind="wrong-bytes", path=error.path, detail=error.detail)
        return 1
    except Exception as error:
        # Told by kind; the module has the words for each. The text serves only the kinds nobody foresaw.
        say(event="error", detail=f"{type(error).__name__}: {error}", **kind_of(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
