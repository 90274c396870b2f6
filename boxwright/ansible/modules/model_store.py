"""Have the pinned revisions of models in a host's store, every byte verified."""

from __future__ import annotations

import contextlib
from typing import Any, Dict, List, NamedTuple
from urllib.parse import urlsplit

from ansible.module_utils import (
    checkpoint,
    store_manifest,
    store_room,
    way_out,
    weight_files,
    weight_places,
)
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.progress import Progress
from ansible.module_utils.python_environment import EnvironmentFailed, Step, Wanted, ensure
from ansible.module_utils.weight_fetch import Fetched, Hub, fetch
from ansible.module_utils.weight_meter import Limits
from ansible.module_utils.weight_store import Look, Store, StoreError, distinct, needed

DOCUMENTATION = r"""
module: model_store
short_description: Pinned model revisions in a store on the host, verified
description:
  - Fetches what serving needs of each revision into a staging directory (the hub's official client says
    where the files lie, their bytes come over several connections and are hashed on the way), verifies every
    file (SHA-256 where the hub publishes it, else the size) and renames the whole into place.
  - A finished revision is compared with its manifest (size, time, inode); only a file that is missing,
    truncated or altered is fetched again. A store that is whole needs no network and no client.
  - A local path is only looked at, not changed.
options:
  store: {description: "Directory of the store.", type: path, required: true}
  weights:
    description: "The weights and draft models of every deployment, as the plan has them."
    type: list
    elements: dict
    required: true
  quantized: {description: "What is made of weights here, as the plan has it.", type: list, elements: dict}
  served: {description: "Directories that engines read.", type: list, elements: path}
  environment:
    description: "The client's environment: path, packages, constraints, index_url, size in bytes."
    type: dict
    required: true
  client: {description: "Text of the program that asks the hub.", type: str, required: true}
  token: {description: "Token of the hub.", type: str}
  proxy: {description: "URL of a proxy.", type: str}
  no_proxy: {type: list, elements: str, default: [], description: "Hosts that are reached without it."}
  allow_pickle: {description: "Repositories whose pickled weights may be fetched.", type: list, elements: str}
  allow_code: {description: "Repositories that may bring code.", type: list, elements: str}
  deep: {description: "Whether to read and hash every byte again.", type: bool}
  reserve: {description: "Bytes that stay free on the filesystem.", type: int}
  connections: {description: "Connections at a time.", type: int}
  stall_s: {description: "Seconds without a byte after which fetching is given up.", type: int}
  lock_timeout_s: {description: "How long to wait for another run on the same store, in seconds.", type: int}
  peers:
    description: "Other boxes: name, addresses, port, and the places (org--name/commit) to take from them."
    type: list
    elements: dict
  mirrors:
    description: "Addresses and directories that have the store's layout, asked before the hub."
    type: list
    elements: str
  bucket:
    description: "A bucket with the layout of the store: url, access_key, secret_key, region; empty, none."
    type: dict
  share_key: {description: "What the other boxes want to hear.", type: str}
  bytes_per_s: {description: "Limit for everything that is fetched; 0 for none.", type: int}
  progress_file: {description: "Where to tell how far it is.", type: path}
"""


class Work(NamedTuple):
    """One revision. hub: the protocol of where it is; code: it may name classes; look: what was found of it;
    entries: what it holds at last.
    """

    store: Store
    hub: str
    endpoint: str
    code: bool
    look: Look
    entries: List[store_manifest.Entry]

    @property
    def files(self) -> List[Dict[str, Any]]:
        """The files to fetch."""
        files: List[Dict[str, Any]] = self.store.due(self.look)
        return files

    @property
    def due(self) -> bool:
        """Whether anything is to be done."""
        return bool(self.look.flaws or self.look.renewed)


class Call:
    """One call of the module."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module, self.params = module, module.params
        self.progress = Progress(self.params["progress_file"])
        self.hashed = 0
        self.notes: List[str] = []
        self.came: Dict[str, Dict[str, int]] = {}

    def run(self) -> Dict[str, Any]:
        """Bring the store to what is declared; the result. Raises StoreError, EnvironmentFailed, …"""
        results = [self.check_path(weights) for weights in distinct(self.params["weights"], "path")]
        works = []
        for weights in distinct(self.params["weights"], "hub"):
            if not needed(weights, self.params["quantized"] or [], self.params["served"] or []):
                results.append(
                    {
                        "repo": weights["repo"],
                        "revision": weights["revision"],
                        "state": "not needed",
                        "changed": False,
                        "msg": "%s: not fetched, what was made of it is there" % weights["repo"],
                    }
                )
                continue
            works.append(self.look(weights))
        if not self.module.check_mode and any(work.due for work in works):
            works = [work for work in works if not work.due] + self.bring(
                [work for work in works if work.due]
            )
        results += [self.tell(work) for work in works]
        return {
            "changed": any(result.get("changed") for result in results),
            "stores": results,
            "msg": "; ".join(result["msg"] for result in results) or "no weights are declared",
            "said": "; ".join(result["msg"] for result in results if result["changed"]),
            "warnings": self.notes + [text for result in results for text in result.pop("warnings", [])],
        }

    # Looking

    def check_path(self, weights: Dict[str, Any]) -> Dict[str, Any]:
        """A checkpoint that a person keeps on the host: whole, and left alone."""
        directory = weights.get("directory") or weights.get("path")
        try:
            checkpoint.config(directory)
            tensors = checkpoint.tensors(directory)
        except checkpoint.CheckpointError as error:
            raise StoreError(
                "%s. Copy the whole checkpoint there, or declare a model of the hub" % error
            ) from error
        return {
            "directory": directory,
            "state": "there",
            "changed": False,
            "msg": "%s: %d tensors, all there" % (directory, len(tensors)),
        }

    def look(self, weights: Dict[str, Any]) -> Work:
        """What the store has of a revision."""
        repo = weights["repo"]
        files = [dict(file, sha256=file.get("sha256")) for file in weights.get("files") or []]
        pickled, code = (repo in (self.params[name] or []) for name in ("allow_pickle", "allow_code"))
        # Code that a config names does not matter where the engine has the class itself: it is not fetched.
        native = bool(weights.get("native"))
        try:
            wanted = weight_files.select(files, pickled, code).wanted
        except weight_files.PathError as error:
            raise StoreError("%s: %s; it is not fetched" % (repo, error)) from error
        store = Store(self.params["store"], weights, wanted)
        if not (store.manifest and not files):
            refused = weight_files.refusal(repo, files, pickled)
            if refused:
                raise StoreError(refused)
        look = self.inspect(store)
        endpoint = weights.get("endpoint") or "https://huggingface.co"
        return Work(
            store, str(weights.get("hub") or "huggingface"), endpoint, code or native, look, look.entries
        )

    def inspect(self, store: Store) -> Look:
        """Look at one store, telling of the hashing when there is much of it."""
        total = sum(file["size"] for file in store.wanted)
        self.hashed = 0

        def tell(count: int) -> None:
            self.hashed += count
            self.progress.update("verifying %s" % store.repo, self.hashed, total, "bytes")

        return store.look(deep=self.params["deep"], tell=tell)

    # Bringing

    def bring(self, works: List[Work]) -> List[Work]:
        """Do what is due, with every store locked; the works with what they hold now."""
        finished = []
        with contextlib.ExitStack() as locks:
            # In one order everywhere, so that two runs cannot wait for each other.
            for work in sorted(works, key=lambda work: work.store.lock):
                locks.enter_context(
                    store_room.alone(work.store.lock, self.waiting, self.params["lock_timeout_s"])
                )
            works = [self.look_again(work) for work in works]
            for work in works:
                work.store.clean_staging(work.files)
                work.store.borrow(work.files)
            self.check_room(works)
            for work in works:
                entries = work.look.entries
                if work.files:
                    fetched = self.fetch(work)
                    self.notes += fetched.notes
                    self.came[work.store.directory] = fetched.came
                    entries = work.store.publish(work.look, fetched.sums)
                elif work.look.renewed:
                    work.store.record(work.store.directory, entries)
                finished.append(work._replace(entries=entries))
        return finished

    def look_again(self, work: Work) -> Work:
        """The work as it stands once the store is locked: another run may have been at it meanwhile."""
        if store_manifest.load(work.store.directory) == work.store.manifest:
            return work
        return work._replace(look=work.store.look())

    def check_room(self, works: List[Work]) -> None:
        """Raise StoreError before the first byte when not all of it fits."""
        short = store_room.shortage([work.store.need(work.files) for work in works], self.params["reserve"])
        if short:
            raise StoreError(short)

    def fetch(self, work: Work) -> Fetched:
        """Fetch one store's files into its staging directory."""
        hub = Hub(
            work.endpoint,
            self.params["token"] or "",
            self.params["proxy"] or "",
            self.client,
            self.params["client"],
            work.hub,
        )
        limits = Limits(
            self.params["connections"], self.params["stall_s"], bytes_per_s=self.params["bytes_per_s"]
        )
        others = weight_places.boxes(
            work.store, self.params["peers"], self.params["share_key"] or ""
        ) + weight_places.mirrors(work.store, self.params["mirrors"], self.params["proxy"] or "")
        others += weight_places.buckets(work.store, self.params["bucket"] or {}, self.params["proxy"] or "")
        fetched: Fetched = fetch(work.store, work.files, hub, others, limits, work.code, self.progress)
        return fetched

    def client(self) -> str:
        """Have the official client there; its interpreter."""
        wanted = self.params["environment"]
        environment = Wanted(
            wanted["path"],
            [Step(wanted["packages"], [])],
            wanted["constraints"],
            wanted["index_url"],
            proxy=self.params["proxy"] or "",
            size=int(wanted["size"]),
        )
        ensure(environment, self.progress.update)
        python: str = environment.python
        return python

    def waiting(self, holder: str) -> None:
        """Told while another run has the store."""
        self.progress.update("waiting: %s fetches the same weights" % holder)

    # Telling

    def tell(self, work: Work) -> Dict[str, Any]:
        """The result of one store."""
        store, files, check = work.store, work.files, self.module.check_mode
        size = sum(file["size"] for file in files)
        if not files:
            state = "recorded anew" if work.due else "there"
        else:
            state = "repaired" if work.look.entries or store.manifest else "fetched"
        if files and check:
            msg = "%s: %d files (%s) would be fetched" % (store.repo, len(files), store_room.human(size))
        else:
            msg = "%s: %s" % (store.repo, store_manifest.summary(work.entries))
        if state == "repaired":
            flaws = ", ".join("%s (%s)" % flaw for flaw in work.look.flaws)
            msg += "; %s: %s" % ("flawed" if check else "fetched again", flaws)
        came = self.came.get(store.directory, {})
        if came and list(came) != [urlsplit(work.endpoint).netloc.rpartition("@")[2]]:
            parts = ["%s from %s" % (store_room.human(count), name) for name, count in sorted(came.items())]
            msg += "; " + ", ".join(parts)
        strangers = [] if files and check else store.strangers(work.entries)
        return {
            "repo": store.repo,
            "revision": store.revision,
            "directory": store.directory,
            "state": state,
            "changed": work.due,
            "flaws": [flaw._asdict() for flaw in work.look.flaws],
            "fetched_bytes": 0 if check else size,
            "came": came,
            "files": len(work.entries),
            "by_sha256": sum(entry.verified == "sha256" for entry in work.entries),
            "msg": msg,
            "warnings": [
                "%s holds files that are not part of the revision: %s"
                % (store.directory, ", ".join(strangers[:5]))
            ]
            if strangers
            else [],
        }


def main() -> None:
    """Ansible's entry point."""
    module = AnsibleModule(
        argument_spec={
            "store": {"type": "path", "required": True},
            "weights": {"type": "list", "elements": "dict", "required": True},
            "quantized": {"type": "list", "elements": "dict", "default": []},
            "served": {"type": "list", "elements": "path", "default": []},
            "environment": {"type": "dict", "required": True},
            "client": {"type": "str", "required": True},
            "token": {"type": "str", "no_log": True},
            "proxy": {"type": "str", "no_log": False},
            "no_proxy": {"type": "list", "elements": "str", "default": []},
            "allow_pickle": {"type": "list", "elements": "str", "default": []},
            "allow_code": {"type": "list", "elements": "str", "default": []},
            "deep": {"type": "bool", "default": False},
            "reserve": {"type": "int", "default": 2_000_000_000},
            "connections": {"type": "int", "default": 8},
            "stall_s": {"type": "int", "default": 600},
            "lock_timeout_s": {"type": "int", "default": 86400},
            "peers": {"type": "list", "elements": "dict", "default": []},
            "mirrors": {"type": "list", "elements": "str", "default": []},
            "bucket": {"type": "dict", "default": {}, "no_log": True},
            "share_key": {"type": "str", "no_log": True},
            "bytes_per_s": {"type": "int", "default": 0},
            "progress_file": {"type": "path"},
        },
        supports_check_mode=True,
    )
    way_out.follow(module)
    try:
        result = Call(module).run()
    except (StoreError, EnvironmentFailed) as error:
        module.fail_json(msg=str(error))
    except store_room.BusyError as error:
        module.fail_json(
            msg="the store %s is in use: %s. End it and run again" % (module.params["store"], error)
        )
    except OSError as error:
        module.fail_json(
            msg="%s: %s. Check the filesystem of the store, then run again; what has arrived is kept"
            % (error.filename or module.params["store"], error.strerror or error)
        )
    else:
        warnings = result.pop("warnings")
        for warning in warnings:
            module.warn(warning)
        module.exit_json(**result)


if __name__ == "__main__":
    main()
