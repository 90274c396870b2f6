"""Shows how far model_store is while it fetches or verifies."""

from __future__ import annotations

from boxwright.ansible.action.watched import WatchedAction


class ActionModule(WatchedAction):
    """The action beside the module model_store."""

    module_name = "model_store"
