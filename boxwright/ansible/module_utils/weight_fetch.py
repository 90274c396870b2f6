"""Fetching files of a revision into its staging directory with the hub's own client, watched."""

from __future__ import annotations

import json
import os
import time
from typing import Any, Dict, List, NamedTuple

from ansible.module_utils import command, hub_messages, store_room, worker
from ansible.module_utils.progress import Progress
from ansible.module_utils.weight_store import Store, StoreError


class Hub(NamedTuple):
    """How the hub is reached. token, proxy: "" for none; stall_s: patience without a byte."""

    endpoint: str
    token: str
    proxy: str
    workers: int
    stall_s: int
    attempts: int = 3


class Client(NamedTuple):
    """The official client: the interpreter of its environment and the text of fetch.py."""

    python: str
    script: str


def fetch(
    store: Store, files: List[Dict[str, Any]], hub: Hub, client: Client, code: bool, progress: Progress
) -> Dict[str, str]:
    """Fetch and verify; SHA-256 by path. Raises StoreError; what has arrived stays for the next run."""
    os.makedirs(store.tree, mode=0o755, exist_ok=True)
    script = os.path.join(os.path.dirname(os.path.dirname(client.python)), "fetch.py")
    command.ensure(script, client.script)
    job = {
        "endpoint": hub.endpoint,
        "repo": store.repo,
        "revision": store.revision,
        "target": store.tree,
        "files": files,
        "workers": hub.workers,
        "attempts": hub.attempts,
    }
    watch = _Watch(store, files, hub, progress)
    with worker.Worker([client.python, "-I", script], _environment(store, hub), hub.token) as fetcher:
        fetcher.tell(json.dumps(job))
        for event in fetcher.events():
            watch.look(event)
            if event is None:
                continue
            if event["event"] == "described":
                objection = store.objection(code)
                if objection:
                    raise StoreError(objection)
                fetcher.tell("go")
            elif event["event"] == "file":
                watch.sums[event["path"]] = event["sha256"]
            elif event["event"] == "error":
                raise StoreError(_message(event, store, hub))
        status = fetcher.end()
        if status != 0 or len(watch.sums) != len(files):
            raise StoreError(
                "%s: the hub client ended (%s) before all files had come: %s"
                % (store.repo, status, fetcher.complaint or "it said nothing")
            )
    return watch.sums


class _Watch:
    """Counts what arrives, tells it, and notices when nothing arrives any more."""

    def __init__(self, store: Store, files: List[Dict[str, Any]], hub: Hub, progress: Progress) -> None:
        self.store, self.hub, self.progress = store, hub, progress
        self.total = sum(file["size"] for file in files)
        self.sums: Dict[str, str] = {}
        self.stage = "fetching %s" % store.repo
        self._seen, self._since = -1, time.monotonic()

    def look(self, event: "Dict[str, Any] | None") -> None:
        """Note an event, or the moment without one. Raises StoreError when the line has gone dead."""
        now = time.monotonic()
        if event is not None:
            self._since = now + (event["seconds"] if event["event"] == "waiting" else 0)
            if event["event"] == "waiting":
                self.progress.update("the hub asks to wait %d s" % event["seconds"])
            return
        done, _ = store_room.disk_use(self.store.tree)
        if done != self._seen:
            self._seen, self._since = done, max(now, self._since)
        elif now - self._since > self.hub.stall_s:
            raise StoreError(_message({"kind": "timeout"}, self.store, self.hub))
        self.progress.update(self.stage, min(done, self.total), self.total, "bytes")


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
        HF_HUB_DOWNLOAD_TIMEOUT="30",
        HF_HUB_ETAG_TIMEOUT="20",
        **extra,
    )
    return environment


def _message(event: Dict[str, Any], store: Store, hub: Hub) -> str:
    event = dict(event, detail=worker.hide(str(event.get("detail", "")), hub.token))
    told: str = hub_messages.message(
        event, store.repo, store.revision, hub.endpoint, token=bool(hub.token), proxy=hub.proxy
    )
    return told
