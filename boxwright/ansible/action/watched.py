"""Long module runs that show how far they are: the base of the actions for weights, images, engines."""

from __future__ import annotations

import json
import secrets
import sys
import threading
import time
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

#: Seconds between lines about the same stage: short where a person watches, half a minute in a log.
WATCHED_INTERVAL_S = 5.0
LOGGED_INTERVAL_S = 30.0
POLL_S = 1.0


def describe(state: dict[str, Any], seconds: float) -> str:
    """One line for a progress state: stage, how much of how much, share, rate and time left."""
    done, total, unit = state.get("done"), state.get("total"), state.get("unit") or ""
    line = str(state.get("stage", ""))
    if done is None:
        return line
    scale, name = (1e6, "MB") if unit == "bytes" else (1.0, unit)
    line += f"  {done / scale:,.0f}"
    if total:
        line += f" of {total / scale:,.0f} {name}  {100 * done / total:.0f} %"
        if done and seconds > 1 and done < total:
            line += f"  {done / scale / seconds:,.1f} {name}/s  {(total - done) * seconds / done:.0f} s left"
    else:
        line += f" {name}"
    return line


class WatchedAction(ActionBase):  # type: ignore[misc]  # ansible-core ships no types
    """Runs the module of the plugin's own name, reading its progress file over the same connection."""

    _supports_check_mode = True
    module_name: str = ""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run the module; while it works, show its stages. The result is the module's own."""
        super().run(tmp, task_vars)
        path = f"/run/boxwright-progress-{secrets.token_hex(8)}.json"
        done = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(path, done, task_vars or {}), daemon=True)
        watcher.start()
        try:
            arguments = self.arguments(task_vars or {})
            return self.finish(
                self._execute_module(
                    module_name=self.module_name,
                    module_args=dict(arguments, progress_file=path),
                    task_vars=task_vars,
                ),
                task_vars or {},
            )
        finally:
            done.set()
            watcher.join(timeout=5)

    def arguments(self, task_vars: dict[str, Any]) -> dict[str, Any]:
        """What the module is called with; plugins that add to the task's own arguments override this."""
        return dict(self._task.args)

    def finish(self, result: dict[str, Any], task_vars: dict[str, Any]) -> dict[str, Any]:
        """Look at the result on the controller; plugins that keep something of it override this."""
        return result

    def _watch(self, path: str, done: threading.Event, task_vars: dict[str, Any]) -> None:
        interval = WATCHED_INTERVAL_S if sys.stdout.isatty() else LOGGED_INTERVAL_S
        host = task_vars.get("inventory_hostname", "")
        stage, started, shown = None, time.monotonic(), time.monotonic()
        while not done.wait(POLL_S):
            status, text, _ = self._connection.exec_command(f"cat {path}", sudoable=False)
            now = time.monotonic()
            try:
                state = json.loads(text) if status == 0 else None
            except ValueError:
                continue
            if not state:
                continue
            if state.get("stage") != stage:
                stage, started = state.get("stage"), now
            elif now - shown < interval:
                continue
            shown = now
            Display().display(f"  {host}  {describe(state, now - started)}")
