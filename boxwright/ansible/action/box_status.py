"""Tells the module box_status how the roles are declared, so that it can say what has drifted."""

from __future__ import annotations

from typing import Any

from boxwright.ansible import receipts
from boxwright.ansible.declared import values_of
from boxwright.ansible.lean.action import LeanAction


class ActionModule(LeanAction):
    """The action beside the module box_status."""

    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run the module on the host; the result is the module's own."""
        super().run(tmp, task_vars)
        variables = task_vars or {}
        declared = receipts.declared(values_of(self._templar, variables))
        done: dict[str, Any] = self._execute_module(
            module_name="box_status",
            module_args={"declared": declared, **self._task.args},
            task_vars=task_vars,
        )
        return done
