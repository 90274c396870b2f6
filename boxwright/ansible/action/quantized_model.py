"""Shows how far quantized_model is while it makes a checkpoint, and brings it the calibration texts."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleActionFail

from boxwright.ansible.action.watched import WatchedAction
from boxwright.spec import calibration


class ActionModule(WatchedAction):
    """The action beside the module quantized_model."""

    module_name = "quantized_model"

    def arguments(self, task_vars: dict[str, Any]) -> dict[str, Any]:
        """The task's own, with texts in place of the paths that name them."""
        wanted = self._task.args.get("wanted") or []
        made = [{**one, "calibration": _text(one.get("calibration"))} for one in wanted]
        return {**self._task.args, "wanted": made}


def _text(path: str | None) -> str:
    if not path:
        return ""
    try:
        return calibration.read(path)
    except calibration.CalibrationError as error:
        raise AnsibleActionFail(
            f"quantize.calibration: {path} {error}. Allowed is {calibration.ALLOWED}"
        ) from error
