"""Shows how far a benchmark is."""

from __future__ import annotations

from boxwright.ansible.action.watched import WatchedAction


class ActionModule(WatchedAction):
    """Runs engine_bench with progress."""

    module_name = "engine_bench"
