"""Fetching files of a revision into its staging directory: sources, checks on the way, and messages."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, List, NamedTuple

from ansible.module_utils import command, hub_messages, worker
from ansible.module_utils.http_ranges import FetchError, Lines
from ansible.module_utils.progress import Progress
from ansible.module_utils.weight_download import DiskError, Download, is_full
from ansible.module_utils.weight_files import is_weights
from ansible.module_utils.weight_meter import Limits, Meter
from ansible.module_utils.weight_sources import Client, HubSource, ModelScopeSource, Source
from ansible.module_utils.weight_store import Store, StoreError

#: Seconds that making the official client's environment may take.
ENVIRONMENT_S = 3600


class Hub(NamedTuple):
    """How the hub is reached. token, proxy: "" for none; python: makes the official client's environment
    when it is needed and gives its interpreter; script: the text of resolve.py; kind: the protocol.
    """

    endpoint: str
    token: str
    proxy: str
    python: Callable[[], str]
    script: str
    kind: str = "huggingface"


class Fetched(NamedTuple):
    """sums: SHA-256 by path; came: bytes by source; notes: what a person should know of it."""

    sums: Dict[str, str]
    came: Dict[str, int]
    notes: List[str]


def fetch(
    store: Store,
    files: List[Dict[str, Any]],
    hub: Hub,
    others: List[Source],
    limits: Limits,
    code: bool,
    progress: Progress,
) -> Fetched:
    """Fetch and verify. others: places that are asked before the hub.

    Raises StoreError; what has arrived stays for the next run.
    """
    meter = Meter(limits)
    stage, total = "fetching %s" % store.repo, sum(file["size"] for file in files)
    sources = [*others, *([] if others and others[-1].last else [_hub_source(store, hub, limits, meter)])]

    def waiting(seconds: float) -> None:
        meter.patient(seconds)
        progress.update("%s asks to wait %d s" % (sources[-1].name, seconds))

    if isinstance(sources[-1], HubSource):
        sources[-1].waiting = waiting
    small = [file for file in files if not is_weights(file["path"])]
    large = [file for file in files if is_weights(file["path"])]
    before = sum(file["size"] for file in small)
    progress.update(stage, 0, total, "bytes")

    def show(done: int) -> None:
        # What the run waits for is on the screen as long as it waits.
        if not meter.waits:
            progress.update(stage, done, total, "bytes")

    try:
        sums = Download(
            small,
            store.tree,
            sources,
            limits,
            meter,
            lambda done: progress.update(stage, done, total, "bytes"),
        ).run()
        objection = store.objection(code)
        if objection:
            raise StoreError(objection)
        rest = Download(large, store.tree, sources, limits, meter, lambda done: show(before + done))
        sums.update(rest.run())
    except FetchError as error:
        raise StoreError(_message(error, store, hub)) from error
    except DiskError as error:
        if is_full(error):
            raise StoreError(_message(FetchError("disk-full"), store, hub)) from error
        raise StoreError(
            "%s of %s cannot be written below %s: %s. Check the disk, then run again; what has arrived is "
            "kept" % (error, store.repo, store.tree, error.__cause__)
        ) from error
    finally:
        for source in sources:
            source.close()
    return Fetched(sums, meter.came, meter.notes)


def _hub_source(store: Store, hub: Hub, limits: Limits, meter: Meter) -> Source:
    lines = Lines(hub.proxy, timeout=min(30.0, limits.stall_s))
    if hub.kind == "modelscope":
        return ModelScopeSource(hub.endpoint, store.repo, store.revision, hub.token, lines)
    script = os.path.join(store.staging, "resolve.py")

    def python() -> str:
        meter.patient(ENVIRONMENT_S)
        interpreter = hub.python()
        command.ensure(script, hub.script)
        meter.resume()
        return interpreter

    client = Client(python, script, _environment(store, hub), hub.token)
    return HubSource(hub.endpoint, store.repo, store.revision, client, lines, limits.workers)


def _environment(store: Store, hub: Hub) -> Dict[str, str]:
    # The token goes this way only: an environment is readable by its owner alone, an argument list by
    # everybody.
    extra = {"HF_TOKEN": hub.token} if hub.token else {"HF_HUB_DISABLE_IMPLICIT_TOKEN": "1"}
    if hub.proxy:
        extra.update(dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), hub.proxy))
    environment: Dict[str, str] = worker.environment(
        HF_HOME=os.path.join(store.staging, "home"),
        HF_HUB_DISABLE_TELEMETRY="1",
        HF_HUB_DISABLE_PROGRESS_BARS="1",
        HF_HUB_ETAG_TIMEOUT="20",
        **extra,
    )
    return environment


def _message(error: FetchError, store: Store, hub: Hub) -> str:
    wait = "" if error.wait is None else "%d" % error.wait
    event = {
        "kind": error.kind,
        "status": error.status,
        "code": error.code,
        "path": error.path,
        "retry_after": wait,
        "detail": worker.hide(error.detail, hub.token),
    }
    told: str = hub_messages.message(
        event, store.repo, store.revision, hub.endpoint, token=bool(hub.token), proxy=hub.proxy
    )
    return told
