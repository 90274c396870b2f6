#!/usr/bin/python
"""Ansible module: an earlier release of a deployment serves again, or the present one goes on."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Optional

from ansible.module_utils import systemctl
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.command import read
from ansible.module_utils.docker_api import Docker, DockerError
from ansible.module_utils.engine_bring import ARGUMENTS, bring_all, engines_alone, message
from ansible.module_utils.engine_store import RELEASE_FILE, ChoiceError, Release, Store, chosen
from ansible.module_utils.engine_switch import Gate
from ansible.module_utils.store_room import BusyError

DOCUMENTATION = r"""
module: engine_rollback
short_description: An earlier release of a deployment serves again
description:
  - Starts a release that lies on the host in the place of the current one, examines it like a new one, and
    makes it the current one. One that does not serve makes way for the release that served until now.
options:
  deployment: {type: str, description: "Which one; needed where the host has several."}
  to: {type: str, description: "Id of the release, or its beginning; left out, the one before the current."}
  root_dir: {type: path, required: true, description: "Where releases and caches lie."}
  start_timeout_s: {type: int, default: 1800, description: "Seconds for a whole start."}
  stage_timeouts_s: {type: dict, default: {}, description: "Seconds for one stage of a start."}
  drain_seconds: {type: int, default: 60, description: "Seconds that running requests have to finish."}
  warm_tokens: {type: int, default: 8192, description: "Tokens of the longest prompt before traffic."}
  gate_skip: {type: list, elements: str, default: [], description: "Parts of the exam to leave out."}
  progress_file: {type: path, description: "Where to tell how far the work is."}
"""
RETURN = r"""
results: {type: list, description: "As engine_gate's."}
failures: {type: list, description: "As engine_gate's."}
releases: {type: list, description: "What the host has of the deployment: id, made, image, current."}
image: {type: str, description: "The image of the release that serves now, as it was declared."}
"""


class RollbackError(Exception):
    """There is nothing to go back to; the text says why, and what there is."""


def listing(store: Store) -> List[Dict[str, Any]]:
    """The releases of a deployment on the host, the newest first."""
    current, found = store.link("current"), []
    for one in reversed(store.releases()):
        try:
            document = json.loads(read(store.path(one, RELEASE_FILE)) or "")
        except ValueError:
            continue
        found.append(
            {
                "id": one,
                "made": document.get("made"),
                "image": document.get("image"),
                "current": one == current,
            }
        )
    return found


def target(store: Store, wanted: Optional[str]) -> Release:
    """The release to go back to. Raises RollbackError."""
    if wanted:
        fitting = [one for one in store.releases() if one.startswith(wanted)]
        release = store.read(fitting[0]) if len(fitting) == 1 else None
        why = "%d releases of %s begin with %s" % (len(fitting), store.name, wanted)
    else:
        release = store.read(store.link("previous"))
        why = "no release of %s served before the present one" % store.name
    if release is None:
        raise RollbackError("%s; on the host are:\n%s" % (why, _table(listing(store))))
    return release


def _table(releases: List[Dict[str, Any]]) -> str:
    rows = [
        "  %s  %s  %s%s" % (one["id"], one["made"], one["image"], "  (current)" if one["current"] else "")
        for one in releases
    ]
    return "\n".join(rows) or "  none"


def main() -> None:
    """Find the release, bring it to serve."""
    module = AnsibleModule(
        argument_spec={
            "deployment": {"type": "str"},
            "to": {"type": "str"},
            "root_dir": {"type": "path", "required": True},
            **ARGUMENTS,
        },
        supports_check_mode=True,
    )
    params, docker = module.params, Docker()
    try:
        store = Store(params["root_dir"], chosen(params["root_dir"], params["deployment"]))
        release = target(store, params["to"])
        if docker.image(release.state["reference"]) is None:
            raise RollbackError(
                "the image of release %s is not on the host any more: docker pull %s"
                % (release.id, release.state["reference"])
            )
        if module.check_mode:
            module.exit_json(changed=store.link("current") != release.id, results=[], releases=listing(store))
        with engines_alone(params):
            gate = Gate(release.plan, release, params, docker)
            results, failures = bring_all([gate], docker)
    except BusyError as error:
        module.fail_json(msg="the engines of this host are being started: %s" % error)
    except (RollbackError, ChoiceError, systemctl.UnitError, DockerError, OSError) as error:
        module.fail_json(msg=str(error))
    if failures:
        module.fail_json(msg=message(failures), failures=failures, results=results, changed=True)
    changed = results[0]["changed"]
    module.exit_json(
        changed=changed,
        results=results,
        releases=listing(store),
        image=release.plan.get("image"),
        said="%s serves release %s" % (store.name, release.id) if changed else "",
    )


if __name__ == "__main__":
    main()
