#!/usr/bin/python
"""Say what a box's store holds, read it through, and free what nothing uses."""

from __future__ import annotations

import os
from typing import Any, Dict, List

from ansible.module_utils import host_reading, store_listing, store_room
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.progress import Progress

DOCUMENTATION = r"""
module: model_listing
short_description: List, verify and prune a model store
description:
  - Lists the revisions of a store with size, state and the releases that use them.
  - A file that is not as recorded is named, and marked, so that the next run of model_store has it again.
options:
  root_dir: {description: "Where models and releases are kept.", type: path, required: true}
  declared: {description: "Models of the declaration: repo, revision or null.", type: list, elements: dict}
  deep: {description: "Whether to read and hash every byte.", type: bool, default: false}
  prune: {description: "Directories to remove; one that is used stays.", type: list, elements: path}
  progress_file: {description: "Where to tell how far it is.", type: path}
author: [Boxwright maintainers]
"""
RETURN = r"""
revisions: {description: "What the store holds.", type: list, returned: always}
freed: {description: "Directories that were removed.", type: list, returned: always}
kept: {description: "Directories that were to be removed and are in use.", type: list, returned: always}
room: {description: "Bytes free on the store's filesystem.", type: int, returned: always}
"""


def work(parameters: Dict[str, Any]) -> Dict[str, Any]:
    """List, and remove what was asked for."""
    root = os.path.normpath(os.path.join(parameters["root_dir"], "models"))
    served = store_listing.users(host_reading.releases(os.path.join(parameters["root_dir"], "releases")))
    declared = [store_listing.Declared(one["repo"], one.get("revision")) for one in parameters["declared"]]
    progress = Progress(parameters["progress_file"])

    def tell(repo: str, done: int, total: int) -> None:
        progress.update("verifying %s" % repo, done, total, "bytes")

    def look(deep: bool) -> List[store_listing.Revision]:
        found: List[store_listing.Revision] = store_listing.listing(root, served, declared, deep, tell)
        return found

    revisions = look(parameters["deep"])
    freed: List[str] = []
    kept: List[str] = []
    for revision in revisions:
        if revision.directory in parameters["prune"]:
            idle = not revision.used and not revision.declared
            (freed if idle and store_listing.free(root, revision) else kept).append(revision.directory)
    left = [revision._asdict() for revision in revisions if revision.directory not in freed]
    return {
        "changed": bool(freed),
        "revisions": left,
        "freed": freed,
        "kept": kept,
        "room": store_room.free(root),
    }


def main() -> None:
    """The module."""
    module = AnsibleModule(
        argument_spec={
            "root_dir": {"type": "path", "required": True},
            "declared": {"type": "list", "elements": "dict", "default": []},
            "deep": {"type": "bool", "default": False},
            "prune": {"type": "list", "elements": "path", "default": []},
            "progress_file": {"type": "path"},
        }
    )
    try:
        result = work(module.params)
    except OSError as error:
        module.fail_json(
            msg="%s: %s. Check the filesystem of the store" % (error.filename, error.strerror or error)
        )
    module.exit_json(**result)


if __name__ == "__main__":
    main()
