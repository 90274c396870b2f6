#!/usr/bin/python
"""Takes a box out of a gateway's use before it is changed, and back when it answers again."""

from __future__ import annotations

import os
import time
from typing import Any, Dict, List

from ansible.module_utils import gateway_socket
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.gateway_socket import GatewayError, Server
from ansible.module_utils.gateway_words import ADMIN, ident

DOCUMENTATION = r"""
module: gateway_server
short_description: A box gets no new requests from the gateway, or gets them again
description:
  - Speaks to HAProxy's runtime socket on the gateway's own host; nothing is reloaded.
  - drained gives the box no new requests, where another one serves each of its models, and waits until those
    that run are through. The only box of a model stays in use, and the result says so.
  - ready gives it new requests again, and waits until the gateway's own check has found it well.
options:
  box: {description: "The box, by its name in the inventory.", type: str, required: true}
  state: {type: str, choices: [drained, ready], required: true, description: "Which of the two."}
  timeout_s: {description: "How long to wait, in seconds.", type: int, default: 300}
  socket: {description: "HAProxy's runtime socket.", type: path, default: /run/boxwright-gateway/admin.sock}
author: [Boxwright maintainers]
"""
EXAMPLES = r"""
- name: The box gets no new requests
  gateway_server:
    box: box1
    state: drained
"""
RETURN = r"""
drained: {description: "Whether the box gets no new requests now.", type: bool, returned: success}
told: {description: "What a person should know.", type: list, returned: success}
"""

#: Seconds between two looks.
POLL_S = 0.5


def of_box(path: str, box: str) -> List[Server]:
    """The box's servers, one a model. Raises GatewayError."""
    return [one for one in gateway_socket.servers(path, "model.") if one.name == ident("", box)]


def alone(path: str, mine: List[Server]) -> List[str]:
    """Models that nobody but the box serves at the moment."""
    others = {one.backend for one in gateway_socket.servers(path, "model.") if one.up and one not in mine}
    return sorted(one.backend[len("model.") :] for one in mine if one.up and one.backend not in others)


def drain(params: Dict[str, Any], check: bool) -> Dict[str, Any]:
    """No new requests, and those that run are through. Raises GatewayError."""
    path, box = params["socket"], params["box"]
    mine = of_box(path, box)
    lonely = alone(path, mine)
    if lonely:
        told = "%s alone serves %s: its requests are not held up at the gateway" % (box, ", ".join(lonely))
        return {"changed": False, "drained": False, "told": [told]}
    todo = [one for one in mine if not one.drained]
    if check:
        return {"changed": bool(todo), "drained": False, "told": []}
    for one in todo:
        gateway_socket.set_state(path, one, "drain")
    until = time.monotonic() + params["timeout_s"]
    while True:
        running = sum(one.sessions for one in of_box(path, box))
        if not running or time.monotonic() >= until:
            break
        time.sleep(POLL_S)
    late = "%s still works on %d requests after %d s; they end with the engine's own patience" % (
        box,
        running,
        params["timeout_s"],
    )
    return {"changed": bool(todo), "drained": bool(mine), "told": [late] if running else []}


def ready(params: Dict[str, Any], check: bool) -> Dict[str, Any]:
    """New requests again, and found well by the gateway's own check. Raises GatewayError."""
    path, box = params["socket"], params["box"]
    todo = [one for one in of_box(path, box) if one.drained]
    if check:
        return {"changed": bool(todo), "drained": False, "told": []}
    for one in todo:
        gateway_socket.set_state(path, one, "ready")
    until = time.monotonic() + params["timeout_s"]
    while True:
        ill = [one for one in of_box(path, box) if not one.up]
        if not ill:
            return {"changed": bool(todo), "drained": False, "told": []}
        if time.monotonic() >= until:
            states = "; ".join(
                "%s is %s there (%s)" % (one.backend[len("model.") :], one.status, one.check) for one in ill
            )
            raise GatewayError("%s answers, but not to the gateway: %s" % (box, states))
        time.sleep(POLL_S)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "box": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["drained", "ready"], "required": True},
            "timeout_s": {"type": "int", "default": 300},
            "socket": {"type": "path", "default": ADMIN},
        },
        supports_check_mode=True,
    )
    if not os.path.exists(module.params["socket"]):
        # A gateway that was never there, or is stopped, sends nobody anything.
        module.exit_json(changed=False, drained=False, told=[])
    act = drain if module.params["state"] == "drained" else ready
    try:
        module.exit_json(**act(module.params, module.check_mode))
    except GatewayError as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
