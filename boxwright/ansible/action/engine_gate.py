"""Shows how far the start of an engine is."""

from __future__ import annotations

from boxwright.ansible.action.watched import WatchedAction


class ActionModule(WatchedAction):
    """Runs engine_gate with progress."""

    module_name = "engine_gate"
