"""The whole of what Ansible does and says, in the run's log, and with --verbose on the terminal too.

With BOXWRIGHT_LOG set only. All that Ansible displays is in it, so what the other callback tells is, too.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import ansible.utils.display
from ansible.plugins.callback import CallbackBase
from ansible.template import Templar

from boxwright.ansible import hidden, run_log

DOCUMENTATION = """
    name: boxwright_log
    type: notification
    short_description: the whole of what Ansible does, in a file
    description: Writes every task and what it returned to a log that holds no secret.
"""
#: What Ansible puts in a trace's place when it has none.
NO_TRACE = "(traceback unavailable)"


class CallbackModule(CallbackBase):  # type: ignore[misc]  # ansible-core ships no types
    """Writes what happens as it happens. A log that cannot be written ends no run: that is said once."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "boxwright_log"

    def __init__(self) -> None:
        super().__init__()
        self._log: run_log.RunLog | None = None
        self._shown = os.environ.get(run_log.SHOWN) == "1"
        self._began: dict[str, float] = {}
        if file := os.environ.get(run_log.FILE):
            self._log = run_log.RunLog(Path(file))
            # Ansible's own way to a log has no place where secrets could be taken out.
            ansible.utils.display.logger = _Displayed(self)

    # -- what Ansible calls ---------------------------------------------------------------------

    def v2_playbook_on_play_start(self, play: Any) -> None:
        """Which secrets there are is known from here on."""
        if self._log is None:
            return
        manager = play.get_variable_manager()
        for host in manager._inventory.get_hosts(play.hosts):
            variables = manager.get_vars(play=play, host=host)
            templar = Templar(loader=play.get_loader(), variables=variables)
            self._log.learn(hidden.secrets(templar, variables))
        self._tell(f"PLAY  {play.get_name()}")

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        """A task, with its role."""
        self._began[task._uuid] = time.time()
        self._tell(f"TASK  {task.get_name()}")

    def v2_playbook_on_handler_task_start(self, task: Any) -> None:
        """A handler is a task."""
        self.v2_playbook_on_task_start(task, False)

    def v2_runner_on_ok(self, result: Any) -> None:
        """What it returned."""
        self._returned(result, "changed" if result.result.get("changed") else "ok")

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """What it returned, and where it broke."""
        self._returned(result, "failed, and that is no matter" if ignore_errors else "failed")
        trace = str(result.result.get("exception") or "")
        if trace and NO_TRACE not in trace and not result.result.get("censored"):
            self._tell(trace)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """What SSH said."""
        self._returned(result, "unreachable")

    def v2_runner_on_skipped(self, result: Any) -> None:
        """Which condition was not met."""
        self._returned(result, "skipped")

    def v2_runner_retry(self, result: Any) -> None:
        """A try that was not the last."""
        self._returned(result, "is tried again")

    # -- how it is written ----------------------------------------------------------------------

    def _returned(self, result: Any, ended: str) -> None:
        if self._log is None:
            return
        action = result.task.action.rpartition(".")[2]
        seconds = time.time() - self._began.get(result.task._uuid, time.time())
        text = run_log.result_text(action, result.result, self._log.masked)
        self._tell(f"{result.host.get_name()}: {ended}  ({seconds:.1f} s)" + (f"\n{text}" if text else ""))

    def _tell(self, text: str) -> None:
        told = self.keep(text)
        if self._shown and told:
            self._display.display("\n".join(f"      {line}" for line in told.split("\n")), screen_only=True)

    def keep(self, text: str) -> str:
        """Write a text to the log; what was written."""
        if self._log is None:
            return ""
        log = self._log
        try:
            return log.write(text)
        except OSError as error:
            self._log, ansible.utils.display.logger = None, None
            self._display.warning(f"the log of this run ends here: {error}")
            return ""


class _Displayed:
    """What Ansible's display takes for its logger."""

    def __init__(self, callback: CallbackModule) -> None:
        self._callback = callback

    def log(self, level: int, text: str) -> None:
        """All that is displayed: the lines for a person, warnings, errors."""
        self._callback.keep(text)
