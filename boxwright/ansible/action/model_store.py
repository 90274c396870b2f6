"""Shows how far model_store is while it fetches or verifies, and tells it which boxes have what it lacks."""

from __future__ import annotations

from typing import Any

from boxwright.ansible import spread
from boxwright.ansible.action.watched import WatchedAction


class ActionModule(WatchedAction):
    """The action beside the module model_store."""

    module_name = "model_store"

    def arguments(self, task_vars: dict[str, Any]) -> dict[str, Any]:
        """The task's own, and the boxes to take from."""
        key = task_vars.get(spread.KEY)
        if not key:
            return dict(self._task.args)
        return {**self._task.args, "peers": spread.peers(task_vars), "share_key": str(key)}
