"""Gives each deployment the image digest of the inventory's lock, and locks what was resolved anew."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.module_utils.parsing.convert_bool import boolean

from boxwright.ansible.lean.action import LeanAction
from boxwright.errors import UserError
from boxwright.spec import lock


class ActionModule(LeanAction):
    """Runs engine_release between reading and updating `boxwright.lock.json`.

    trial (default false): of a release that is not what is declared, nothing is locked.
    """

    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run the module; its result is the task's."""
        super().run(tmp, task_vars)
        variables = task_vars or {}
        host, directory = variables["inventory_hostname"], variables.get("inventory_dir")
        arguments = dict(self._task.args)
        locks = not boolean(arguments.pop("trial", False)) and not self._task.check_mode
        try:
            if directory:
                path = lock.path_of(directory)
                arguments["digests"] = self._locked(path, host, arguments.get("deployments") or [])
            result: dict[str, Any] = self._execute_module(
                module_name="engine_release", module_args=arguments, task_vars=task_vars
            )
            if directory and locks and not result.get("failed"):
                for name, found in result.get("digests", {}).items():
                    lock.update(path, host, name, image=found["image"], image_digest=found["digest"])
        except UserError as error:
            raise AnsibleActionFail(str(error)) from error
        return result

    def _locked(self, path: Any, host: str, deployments: list[dict[str, Any]]) -> dict[str, str]:
        """Deployment -> digest, as far as the lock was made for the image that is declared now."""
        known = lock.read(path)
        found = {one["name"]: known.entry(host, one["name"]).digest_of(one["image"]) for one in deployments}
        return {name: digest for name, digest in found.items() if digest}
