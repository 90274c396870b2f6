"""Says what a restart of Docker is about to stop, before it does."""

from __future__ import annotations

from typing import Any

from ansible.utils.display import Display

from boxwright.ansible.lean.action import LeanAction


class ActionModule(LeanAction):
    """Runs docker_daemon_config; where that must stop containers, it says so before it does."""

    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run the module; its result is the task's."""
        super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        result = self._module(dict(arguments, announce=True), task_vars)
        stopped = result.get("announced")
        if not stopped or result.get("failed"):
            return result
        tense = "would be" if self._task.check_mode else "is being"
        Display().display(f"  {(task_vars or {}).get('inventory_hostname')}  {describe(stopped, tense)}")
        return result if self._task.check_mode else self._module(dict(arguments, announce=False), task_vars)

    def _module(self, arguments: dict[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        result: dict[str, Any] = self._execute_module(
            module_name="docker_daemon_config", module_args=arguments, task_vars=task_vars
        )
        return result


def describe(containers: list[str], tense: str) -> str:
    """One line: what stops, and what comes back by itself."""
    engines = [name for name in containers if name.startswith("boxwright-")]
    others = [name for name in containers if name not in engines]
    parts = []
    if engines:
        parts.append(f"{', '.join(engines)} (started again by systemd; loading takes its time)")
    if others:
        parts.append(f"{', '.join(others)} (back only with a restart policy of their own)")
    return f"Docker {tense} restarted; this stops " + " and ".join(parts)
