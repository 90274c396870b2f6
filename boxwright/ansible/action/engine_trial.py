"""Shows how far a release on trial is, and says why one does not serve."""

from __future__ import annotations

from boxwright.ansible.action import engine_gate


class ActionModule(engine_gate.ActionModule):
    """Runs engine_trial as engine_gate is run."""

    module_name = "engine_trial"
