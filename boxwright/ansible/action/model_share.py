"""Lets a box offer its weights to the others of a run, where one of them lacks any."""

from __future__ import annotations

from typing import Any

from boxwright.ansible import spread
from boxwright.ansible.lean.action import LeanAction
from boxwright.planner import spreading


class ActionModule(LeanAction):
    """The action beside the module model_share; skipped where nobody lacks anything."""

    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run the module with what this box itself is going to fetch."""
        result: dict[str, Any] = super().run(tmp, task_vars) or {}
        variables = task_vars or {}
        arguments = dict(self._task.args)
        if arguments.get("state", "started") == "started":
            made = spread.plans(variables)
            if self._task.check_mode or not any(spreading.lacking(plan) for plan in made.values()):
                return {**result, "skipped": True, "changed": False}
            mine = None if self._task.delegate_to else made.get(str(variables["inventory_hostname"]))
            arguments["expected"] = spreading.places(mine) if mine and spreading.lacking(mine) else []
        outcome: dict[str, Any] = self._execute_module(
            module_name="model_share", module_args=arguments, task_vars=task_vars
        )
        if self._task.delegate_to and outcome.get("failed") and not outcome.get("unreachable"):
            # A box that this run does not visit is a help, not a condition.
            told = f"{self._task.delegate_to} gives no weights: {outcome.get('msg')}"
            return {**result, "changed": False, "warnings": [told]}
        return outcome
