"""Tells the module role_receipt how the roles are declared, so that a later run can compare."""

from __future__ import annotations

from typing import Any

from boxwright.ansible import receipts
from boxwright.ansible.declared import values_of
from boxwright.ansible.lean.action import LeanAction


class ActionModule(LeanAction):
    """The action beside the module role_receipt."""

    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run the module on the host, unless this is check mode; the result is the module's own."""
        result: dict[str, Any] = super().run(tmp, task_vars) or {}
        variables = task_vars or {}
        if self._task.check_mode:
            return {**result, "changed": False}
        given = {
            "config_dir": str(variables.get("box_config_dir") or "/etc/boxwright"),
            "declared": receipts.declared(values_of(self._templar, variables)),
            **self._task.args,
        }
        done: dict[str, Any] = self._execute_module(
            module_name="role_receipt", module_args=given, task_vars=task_vars
        )
        return done
