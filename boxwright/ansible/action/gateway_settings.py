"""Says what a gateway serves, from the declarations of the boxes behind it: no connection, no secret."""

from __future__ import annotations

import hashlib
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from boxwright.ansible import fleet as declared
from boxwright.ansible.declared import plain
from boxwright.errors import UserError
from boxwright.planner import fleet

#: Arguments that go on as they are.
KEPT = ("bind", "port", "paths", "affinity", "timeout_s", "allow_from")
KIB = 1024


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible-core ships no types
    """Arguments: boxes (hosts and groups), clients, body_kib, and those of KEPT.

    Returns settings, as gateway_text.files takes them, and key_files: what is to be read on which box.
    """

    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Never changed; failed where a box cannot be behind this gateway."""
        result: dict[str, Any] = super().run(tmp, task_vars) or {}
        variables, asked = task_vars or {}, plain(self._task.args)
        me = str(variables["inventory_hostname"])
        try:
            boxes = declared.boxes(variables, asked["boxes"])
            models = fleet.models(me, boxes, declared.reached(variables, list(boxes)))
        except UserError as error:
            raise AnsibleActionFail(str(error)) from error
        with_key = {(box, one.name) for box in boxes for one in boxes[box].deployments if one.api_key}
        files = [
            {"model": model["name"], "box": server["box"], "path": server.pop("key_file")}
            for model in models
            for server in model["servers"]
        ]
        settings = {
            **{name: asked[name] for name in KEPT},
            "body_bytes": int(asked["body_kib"]) * KIB,
            "models": models,
            "clients": [_client(one) for one in asked["clients"]],
        }
        read = [one for one in files if (one["box"], one["model"]) not in with_key]
        result.update(changed=False, settings=settings, key_files=read)
        return result


def _client(client: dict[str, Any]) -> dict[str, Any]:
    """A client whose key does not leave the controller: only its SHA-256 does."""
    return {
        "name": client["name"],
        "sha256": hashlib.sha256(str(client["key"]).encode("utf-8")).hexdigest(),
        "requests_per_minute": client.get("requests_per_minute") or 0,
    }
