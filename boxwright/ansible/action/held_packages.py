"""Shows how far packages are: downloaded, installed."""

from __future__ import annotations

from boxwright.ansible.action.watched import WatchedAction


class ActionModule(WatchedAction):
    """Runs held_packages with progress."""

    module_name = "held_packages"
