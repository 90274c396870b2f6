"""Shows how far the fetching of a container image is."""

from __future__ import annotations

from boxwright.ansible.action.watched import WatchedAction


class ActionModule(WatchedAction):
    """Runs container_image with progress."""

    module_name = "container_image"
