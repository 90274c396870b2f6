"""Gives the module gateway_endpoint what only the controller has: the engines' keys and the certificate."""

from __future__ import annotations

import base64
import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail

from boxwright.ansible import authority
from boxwright.ansible import fleet as declared
from boxwright.ansible.declared import plain
from boxwright.ansible.lean.action import LeanAction
from boxwright.errors import UserError


class ActionModule(LeanAction):
    """Arguments beside the module's: boxes (hosts and groups), read (the registered result of reading keys,
    an item a key), names (of the certificate), own_certificate and own_key (PEM, empty for an authority's).
    """

    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run the module; its result is the task's, with the path of what clients trust as `ca`."""
        super().run(tmp, task_vars)
        variables, asked = task_vars or {}, plain(self._task.args)
        arguments = {
            name: asked[name] for name in ("settings", "directory", "unit", "state") if name in asked
        }
        trusted = ""
        if arguments.get("state", "present") == "present":
            try:
                arguments["keys"] = {**_declared(variables, asked["boxes"]), **_read(asked["read"])}
                arguments["certificate"], trusted = self._certificate(variables, asked)
            except UserError as error:
                raise AnsibleActionFail(str(error)) from error
        result: dict[str, Any] = self._execute_module(
            module_name="gateway_endpoint", module_args=arguments, task_vars=task_vars
        )
        return {**result, "ca": trusted}

    def _certificate(self, variables: Mapping[str, Any], asked: Mapping[str, Any]) -> tuple[str, str]:
        now = datetime.datetime.now(datetime.UTC)
        if asked.get("own_certificate") or asked.get("own_key"):
            return authority.given(str(asked["own_certificate"]), str(asked["own_key"]), now), ""
        directory = Path(str(variables["inventory_dir"])) / authority.DIRECTORY
        host = str(variables["inventory_hostname"])
        if self._task.check_mode and not directory.exists():
            return "", ""
        return authority.bundle(directory, host, asked["names"], now), str(directory / authority.CA)


def _declared(variables: Mapping[str, Any], named: list[str]) -> dict[str, str]:
    """`model/box` -> the key that the inventory declares for it."""
    found = declared.boxes(variables, named)
    return {
        f"{one.name}/{box}": one.api_key.reveal()
        for box in found
        for one in found[box].deployments
        if one.api_key
    }


def _read(results: Mapping[str, Any]) -> dict[str, str]:
    """`model/box` -> the key that was read there."""
    return {
        f"{one['item']['model']}/{one['item']['box']}": base64.b64decode(one["content"])
        .decode("ascii")
        .strip()
        for one in results.get("results") or ()
        if one.get("content")
    }
