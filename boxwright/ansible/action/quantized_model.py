"""Shows how far quantized_model is while it makes a checkpoint."""

from __future__ import annotations

from boxwright.ansible.action.watched import WatchedAction


class ActionModule(WatchedAction):
    """The action beside the module quantized_model."""

    module_name = "quantized_model"
