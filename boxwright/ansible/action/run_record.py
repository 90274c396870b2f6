"""Leaves a line of the run in the box's history, by a shell over the connection that is there: no module."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase

from boxwright.ansible import hidden, lost_runs, runs
from boxwright.ansible.declared import plain


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible-core ships no types
    """Arguments: event (begun, ended), directory.

    Nothing is left in check mode, or where no verb said who runs what.
    """

    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Append the line. A history that cannot be written ends no run: it is told as a warning."""
        result: dict[str, Any] = {**(super().run(tmp, task_vars) or {}), "changed": False}
        variables = task_vars or {}
        run = variables.get(runs.VARIABLE)
        if self._task.check_mode or not isinstance(run, Mapping):
            return result
        host, event = str(variables.get("inventory_hostname")), self._task.args.get("event")
        directory = str(self._task.args.get("directory") or runs.DIRECTORY)
        seen, where, late = runs.seen.get(host, {}), lost_runs.place(host, variables), []
        try:
            if event == "begun":
                late = lost_runs.kept(where)
                line = runs.begun(plain(run))
            else:
                verb = plain(variables.get(runs.VERB) or {})
                line = runs.ended(plain(run), seen, hidden.secrets(self._templar, variables), verb)
            script = runs.script([*late, line], directory)
            done = self._low_level_execute_command("/bin/sh", in_data=script.encode())
        except AnsibleConnectionFailure:
            raise
        except (AnsibleError, OSError) as error:
            done = {"rc": 1, "stderr": str(error)}
        if not done.get("rc"):
            if late:
                with suppress(OSError):
                    lost_runs.handed_over(where)
            # For the callback, which keeps the end of a run whose host goes away.
            result["record"] = {"event": event, "run": plain(run), "place": where}
        # Whatever keeps a run from beginning at all (sudo, a shell) is told by its next step.
        if done.get("rc") and event == "ended" and not seen.get("failure"):
            said = " ".join(str(done.get("stderr") or done.get("stdout") or "").split())
            result["warnings"] = [f"this run is not in the history of the box, {directory}: {said}"]
        return result
