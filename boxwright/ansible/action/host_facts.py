"""Tells the module host_facts what to look up: the declared models, images, hub and places."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.utils.display import Display

from boxwright import catalog
from boxwright.ansible import interpreter, receipts
from boxwright.ansible.declared import box_of, lock_path, locked_digests, locked_revisions, values_of
from boxwright.ansible.lean.action import LeanAction
from boxwright.errors import UserError
from boxwright.planner.changes.runtime import declared_settings
from boxwright.planner.lookups import lookups
from boxwright.planner.rules import clock
from boxwright.spec.box import Box


def arguments(
    box: Box, revisions: tuple[dict[str, str], dict[str, str]], known: catalog.Catalog
) -> dict[str, Any]:
    """The module's arguments for a box. revisions: as of `locked_revisions`."""
    daemon = declared_settings(box.settings)
    insecure = daemon.get("insecure-registries")
    return {
        "root_dir": box.root_dir,
        "config_dir": box.config_dir,
        "docker_root": str(daemon.get("data-root") or "/var/lib/docker"),
        "models": lookups(box.deployments, known, *revisions),
        "images": sorted({deployment.image for deployment in box.deployments}),
        "hub": box.hub.kind,
        "endpoint": box.hub.address,
        "token": box.hub.token.reveal() if box.hub.token else "",
        "insecure_registries": _texts(insecure),
        "registries": _registries(box.settings.get("container_runtime_registries")),
        "proxy": box.proxy or "",
        "no_proxy": list(box.no_proxy),
        "ca": box.ca or "",
    }


def _registries(declared: object) -> list[dict[str, str]]:
    """What the module needs of the declared registries."""
    found = declared if isinstance(declared, (list, tuple)) else ()
    names = ("host", "username", "password", "ca")
    return [{name: str(one.get(name) or "") for name in names} for one in found if isinstance(one, Mapping)]


def _texts(value: object) -> list[str]:
    return [str(one) for one in value] if isinstance(value, (list, tuple)) else []


class ActionModule(LeanAction):
    """The action beside the module host_facts; the task's own arguments win over those of the declaration."""

    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run the module on the host; the result is the module's own."""
        super().run(tmp, task_vars)
        variables = task_vars or {}
        known = catalog.load()
        try:
            box = box_of(self._templar, variables)
            revisions = locked_revisions(lock_path(variables), box, known)
            digests = locked_digests(lock_path(variables), box)
        except UserError as error:
            raise AnsibleActionFail(str(error)) from error
        declared = receipts.declared(values_of(self._templar, variables))
        given = {
            **arguments(box, revisions, known),
            "declared": declared,
            "digests": digests,
            **self._task.args,
        }
        may_install = bool(given.pop("install_python", False))
        result = self._read(given, variables)
        if interpreter.suspected(result):
            result = self._helped(result, given, variables, may_install, box)
        return result

    def _read(self, given: dict[str, Any], variables: dict[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = self._execute_module(
            module_name="host_facts", module_args=given, task_vars=variables
        )
        if isinstance(result.get("raw"), dict) and isinstance(result["raw"].get("clock"), dict):
            result["raw"]["clock"]["controller"] = int(time.time())
        return result

    def _helped(
        self,
        result: dict[str, Any],
        given: dict[str, Any],
        variables: dict[str, Any],
        may_install: bool,
        box: Box,
    ) -> dict[str, Any]:
        """The facts after Python was installed, or the failure with what is wrong about the host's Python."""
        proxy = box.proxy or ""
        python = str(variables.get("ansible_python_interpreter") or interpreter.PYTHON)
        found = interpreter.read(self._shell(interpreter.look(python))[1])
        complaint = interpreter.complaint(found, python) if found else None
        if found is None or complaint is None:
            return result
        absent = found.version is None and not found.problem and python == interpreter.PYTHON
        if not (absent and may_install and found.installer):
            return {"failed": True, "msg": complaint}
        # Not the task's own mode: reading is done in check mode, too.
        if variables.get("ansible_check_mode"):
            return {
                "failed": True,
                "msg": f"{complaint}\nProvisioning would; until then nothing can be read.",
            }
        now = int(time.time())
        if found.clock is not None and abs(clock.difference(found.clock, now)) >= clock.WRONG:
            ways = "\n".join(clock.WAYS_OUT)
            return {"failed": True, "msg": f"{clock.refusal(found.clock, now)}\n{ways}"}
        Display().display(
            f"  {box_name(variables)}  there is no Python yet: {found.installer} installs python3"
        )
        status, said = self._shell(interpreter.install(found.installer, proxy, box.no_proxy))
        if status:
            last = "\n".join(line for line in said.splitlines()[-6:] if not proxy or proxy not in line)
            return {"failed": True, "msg": f"{found.installer} could not install python3 on the box:\n{last}"}
        return {**self._read(given, variables), "changed": True, "said": "python3 installed"}

    def _shell(self, script: str) -> tuple[int, str]:
        """What a script of a shell says on the host, which need have nothing but the shell."""
        done = self._low_level_execute_command("/bin/sh", in_data=script.encode())
        return int(done.get("rc") or 0), f"{done.get('stdout') or ''}\n{done.get('stderr') or ''}"


def box_name(variables: Mapping[str, Any]) -> str:
    """The host's name in the inventory."""
    return str(variables.get("inventory_hostname", ""))
