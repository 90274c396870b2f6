#!/usr/bin/python
"""Ansible module: a deployment's endpoint asks for a new key."""

from __future__ import annotations

import os
import secrets
from typing import Any, Dict

from ansible.module_utils import systemctl
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.command import read, write
from ansible.module_utils.docker_api import Docker, DockerError
from ansible.module_utils.engine_bring import ARGUMENTS, engines_alone
from ansible.module_utils.engine_state import KEY_MODE
from ansible.module_utils.engine_store import Release, Store
from ansible.module_utils.engine_switch import Gate
from ansible.module_utils.engine_watch import GateError
from ansible.module_utils.store_room import BusyError

DOCUMENTATION = r"""
module: engine_key
short_description: A deployment's endpoint asks for a new key
description:
  - Makes a key and has the engine started anew with it, its running requests finished. When the engine does
    not serve with it, the old key stays.
options:
  deployment: {type: str, required: true, description: "Which one."}
  key_file: {type: path, required: true, description: "Where its key lies."}
  root_dir: {type: path, required: true, description: "Where releases and caches lie."}
  start_timeout_s: {type: int, default: 1800, description: "Seconds for a whole start."}
  stage_timeouts_s: {type: dict, default: {}, description: "Seconds for one stage of a start."}
  drain_seconds: {type: int, default: 60, description: "Seconds that running requests have to finish."}
  warm_tokens: {type: int, default: 8192, description: "Not used: only what is new is warmed."}
  gate_skip: {type: list, elements: str, default: [], description: "Not used: only what is new is examined."}
  progress_file: {type: path, description: "Where to tell how far the work is."}
"""
RETURN = r"""
results: {type: list, description: "As engine_gate's; none where no engine runs yet."}
"""


def rotate(params: Dict[str, Any], docker: Docker, release: Release) -> Dict[str, Any]:
    """Write the new key and start the release with it. Raises GateError once the old one is back."""
    old = read(params["key_file"]) or ""
    write(params["key_file"], secrets.token_hex(32) + "\n", KEY_MODE)
    try:
        return _serve(params, docker, release, "its key is new")
    except GateError:
        write(params["key_file"], old, KEY_MODE)
        _serve(params, docker, release, "its new key did not do")
        raise


def _serve(params: Dict[str, Any], docker: Docker, release: Release, why: str) -> Dict[str, Any]:
    gate = Gate(release.plan, release, params, docker, thorough=False)
    gate.reasons = [why]
    served: Dict[str, Any] = gate.serve()
    return served


def main() -> None:
    """Rotate the key of a deployment that has one."""
    module = AnsibleModule(
        argument_spec={
            "deployment": {"type": "str", "required": True},
            "key_file": {"type": "path", "required": True, "no_log": False},
            "root_dir": {"type": "path", "required": True},
            **ARGUMENTS,
        },
        supports_check_mode=True,
    )
    params = module.params
    store = Store(params["root_dir"], params["deployment"])
    release = store.read(store.link("current"))
    if release is None or not os.path.exists(params["key_file"]):
        module.fail_json(msg="%s has not served yet: provision the box first" % params["deployment"])
    if module.check_mode:
        module.exit_json(changed=True, results=[])
    try:
        with engines_alone(params):
            result = rotate(params, Docker(), release)
    except BusyError as error:
        module.fail_json(msg="the engines of this host are being started: %s" % error)
    except (GateError, systemctl.UnitError, DockerError, OSError) as error:
        module.fail_json(msg="%s does not serve with a new key: %s" % (params["deployment"], error))
    module.exit_json(changed=True, results=[result], said="%s asks for a new key" % params["deployment"])


if __name__ == "__main__":
    main()
