#!/usr/bin/python
"""Takes a box out of a gateway's use before it is changed, and back when it answers again."""

from __future__ import annotations

import os
import time
from typing import Any, Dict, Iterable, List, Sequence

from ansible.module_utils import gateway_socket
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.gateway_socket import GatewayError, Server
from ansible.module_utils.gateway_words import ADMIN, ident

DOCUMENTATION = r"""
module: gateway_server
short_description: Boxes get no new requests from the gateway, or get them again
description:
  - Speaks to HAProxy's runtime socket on the gateway's own host; nothing is reloaded.
  - drained gives the boxes no new requests, where another one serves each of their models, and waits until
    those that run are through. The only box of a model stays in use, and the result says so.
  - offered gives them new requests again as soon as the gateway's own check finds them well, and does not
    wait for that. One that does not answer stays out of use.
  - ready does the same, and fails unless the gateway's own check finds them well in time.
options:
  boxes:
    description: "Boxes by their names in the inventory, each with the names of its deployments."
    type: dict
    required: true
  state: {type: str, choices: [drained, offered, ready], required: true, description: "Which of the three."}
  timeout_s: {description: "How long to wait, in seconds.", type: int, default: 300}
  socket: {description: "HAProxy's runtime socket.", type: path, default: /run/boxwright-gateway/admin.sock}
author: [Boxwright maintainers]
"""
EXAMPLES = r"""
- name: The box gets no new requests
  gateway_server:
    boxes: {box1: [qwen]}
    state: drained
"""
RETURN = r"""
drained: {description: "Boxes that get no new requests now.", type: list, returned: success}
told: {description: "What a person should know.", type: list, returned: success}
said: {description: "What was changed.", type: str, returned: success}
"""

#: Seconds between two looks.
POLL_S = 0.5


def of_boxes(path: str, boxes: Iterable[str]) -> List[Server]:
    """The boxes' servers, one a model and box. Raises GatewayError."""
    names = {ident("", box) for box in boxes}
    return [one for one in gateway_socket.servers(path, "model.") if one.name in names]


def alone(path: str, mine: List[Server]) -> List[str]:
    """Models that nobody else serves at the moment."""
    names = {one.name for one in mine}
    everybody = gateway_socket.servers(path, "model.")
    others = {one.backend for one in everybody if one.up and one.name not in names}
    return sorted({one.model for one in mine if one.up and one.backend not in others})


def drain(params: Dict[str, Any], check: bool) -> Dict[str, Any]:
    """No new requests, and those that run are through. Raises GatewayError."""
    path, boxes = params["socket"], params["boxes"]
    mine, named = of_boxes(path, boxes), ", ".join(boxes)
    if not mine:
        return result(told=["it sends %s nothing yet" % named])
    lonely = alone(path, mine)
    if lonely:
        told = "%s alone serves %s: its requests are not held up at the gateway" % (named, ", ".join(lonely))
        return result(told=[told])
    todo = [one for one in mine if not one.held]
    if check:
        return result(todo)
    for one in todo:
        gateway_socket.set_state(path, one, "drain")
    until = time.monotonic() + params["timeout_s"]
    while True:
        running = sum(one.sessions for one in of_boxes(path, boxes))
        if not running or time.monotonic() >= until:
            break
        time.sleep(POLL_S)
    late = "%s still works on %d requests after %d s; they end with the engine's own patience" % (
        named,
        running,
        params["timeout_s"],
    )
    out = [box for box in boxes if ident("", box) in {one.name for one in mine}]
    return result(todo, drained=out, told=[late] if running else [], said="no new requests for " + named)


def give_back(params: Dict[str, Any], check: bool) -> Dict[str, Any]:
    """New requests again, for the models that the boxes serve. Raises GatewayError."""
    path, boxes = params["socket"], params["boxes"]
    served = {(ident("model", model), ident("", box)) for box in boxes for model in boxes[box]}

    def mine() -> List[Server]:
        return [one for one in of_boxes(path, boxes) if (one.backend, one.name) in served]

    todo = [one for one in mine() if one.held]
    if not check:
        for one in todo:
            gateway_socket.set_state(path, one, "ready")
    named = [box for box in boxes if ident("", box) in {one.name for one in todo}]
    done = result(todo, said="new requests again for " + ", ".join(named))
    if check or params["state"] == "offered":
        return done
    until = time.monotonic() + params["timeout_s"]
    while True:
        ill = [one for one in mine() if not one.up]
        if not ill:
            return done
        if time.monotonic() >= until:
            states = "; ".join("%s is %s there (%s)" % (one.model, one.status, one.check) for one in ill)
            raise GatewayError("%s answers, but not to the gateway: %s" % (", ".join(boxes), states))
        time.sleep(POLL_S)


def result(
    changed: Sequence[Server] = (), drained: Sequence[str] = (), told: Sequence[str] = (), said: str = ""
) -> Dict[str, Any]:
    """What the module answers."""
    return {
        "changed": bool(changed),
        "drained": list(drained),
        "told": list(told),
        "said": said if changed else "",
    }


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "boxes": {"type": "dict", "required": True},
            "state": {"type": "str", "choices": ["drained", "offered", "ready"], "required": True},
            "timeout_s": {"type": "int", "default": 300},
            "socket": {"type": "path", "default": ADMIN},
        },
        supports_check_mode=True,
    )
    if not os.path.exists(module.params["socket"]):
        # A gateway that was never there, or is stopped, sends nobody anything.
        module.exit_json(**result(told=["no gateway runs there"]))
    act = drain if module.params["state"] == "drained" else give_back
    try:
        module.exit_json(**act(module.params, module.check_mode))
    except GatewayError as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
