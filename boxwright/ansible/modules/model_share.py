#!/usr/bin/python
"""Offer a box's weights to the other boxes of a run, and end that."""

from __future__ import annotations

import os
from typing import Any, Dict

from ansible.module_utils import linux_texts, store_server
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.command import run

DOCUMENTATION = r"""
module: model_share
short_description: Offer weights to other boxes for the time of a run
description:
  - Serves whole revisions of the store, and those that this box is fetching, to who has the run's key.
  - The server ends when it is told to, or when nobody has asked it for a quarter of an hour.
options:
  state: {description: "started or stopped.", type: str, choices: [started, stopped], default: started}
  store: {description: "Directory of the store.", type: path, required: true}
  key: {description: "What a box must know to be answered.", type: str}
  expected: {description: "Revisions that this box fetches in this run.", type: list, elements: str}
  port: {description: "TCP port.", type: int, default: 8790}
  bytes_per_s: {description: "What all receivers together may take; 0 for no limit.", type: int, default: 0}
  note: {description: "The file that the server lives by.", type: path}
author: [Boxwright maintainers]
"""
RETURN = r"""
addresses: {description: "Where it can be reached.", type: list, returned: when started}
port: {description: "Its port.", type: int, returned: when started}
holdings: {description: "Whole revisions, as org--name/commit.", type: list, returned: when started}
"""


def started(parameters: Dict[str, Any]) -> Dict[str, Any]:
    """Offer the store. Raises OSError when the port is taken."""
    offer = store_server.Offer(
        parameters["store"], parameters["key"], parameters["expected"], parameters["bytes_per_s"]
    )
    port = store_server.start(offer, parameters["port"], parameters["note"])
    said = [run(["ip", "-j", *words]).stdout for words in (ADDRESSES, ROUTES)]
    return {
        "port": port,
        "addresses": list(linux_texts.addresses(*said)),
        "holdings": store_server.holdings(os.path.normpath(parameters["store"])),
    }


ADDRESSES = ["address", "show", "scope", "global"]
ROUTES = ["route", "show", "default"]


def main() -> None:
    """The module."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["started", "stopped"], "default": "started"},
            "store": {"type": "path", "required": True},
            "key": {"type": "str", "no_log": True},
            "expected": {"type": "list", "elements": "str", "default": []},
            "port": {"type": "int", "default": 8790},
            "bytes_per_s": {"type": "int", "default": 0},
            "note": {"type": "path", "default": "/run/boxwright/model-share.json"},
        },
        required_if=[("state", "started", ("key",))],
    )
    if module.params["state"] == "stopped":
        store_server.stop(module.params["note"])
        module.exit_json(changed=False)
    try:
        result = started(module.params)
    except OSError as error:
        module.fail_json(
            msg="port %d cannot be listened on: %s. Free it, or choose another model_weights_share_port"
            % (module.params["port"], error.strerror or error)
        )
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
