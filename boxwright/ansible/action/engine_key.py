"""Shows how far an engine is that starts with its new key."""

from __future__ import annotations

from boxwright.ansible.action import engine_gate


class ActionModule(engine_gate.ActionModule):
    """Runs engine_key as engine_gate is run."""

    module_name = "engine_key"
