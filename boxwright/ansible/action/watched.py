"""Long module runs that show how far they are: the base of the actions for weights, images, engines."""

from __future__ import annotations

import json
import secrets
import threading
import time
from typing import Any

from ansible.errors import AnsibleError
from ansible.utils.display import Display

from boxwright.ansible import bars
from boxwright.ansible.lean.action import LeanAction
from boxwright.texts import lasting

#: Seconds between lines about the same stage, where no terminal shows a bar.
INTERVAL_S = 30.0
POLL_S = 1.0
#: Seconds from which it is worth telling how long a stage has taken.
SHORT_S = 3.0


class Pace:
    """How far one stage is. Only what was done since it was first seen counts for its speed."""

    def __init__(self, state: dict[str, Any], now: float) -> None:
        self.stage, self._began, self._first = state.get("stage"), now, float(state.get("done") or 0)

    def describe(self, state: dict[str, Any], now: float, *, drawn: bool = False) -> str:
        """One line: stage, how much of how much, share, rate and time left; `drawn` with a bar."""
        done, total, unit = state.get("done"), state.get("total"), state.get("unit") or ""
        line = str(state.get("stage", ""))
        if done is None:
            return line + self._lasted(now)
        if unit == "%" and total:
            return line + self._share(done, total, now, drawn=drawn)
        scale, name = (1e6, "MB") if unit == "bytes" else (1.0, unit)
        if not total:
            return f"{line}  {done / scale:,.0f} {name}{self._lasted(now)}"
        if drawn:
            line += f"  {bars.bar(done, total)}"
        line += f"  {done / scale:,.0f} of {total / scale:,.0f} {name}  {100 * done / total:.0f} %"
        if left := self._left(done, total, now):
            gained, seconds = done - self._first, now - self._began
            line += f"  {gained / scale / seconds:,.1f} {name}/s  {lasting(left)} left"
        return line if left else line + self._lasted(now)

    def _share(self, done: float, total: float, now: float, *, drawn: bool) -> str:
        """Of what tells its share alone."""
        shown = f"  {bars.bar(done, total)}" if drawn else ""
        left = self._left(done, total, now)
        end = f"  {lasting(left)} left" if left else self._lasted(now)
        return f"{shown}  {100 * done / total:.0f} %{end}"

    def _lasted(self, now: float) -> str:
        """How long the stage takes already: of one that stands still, that alone shows that it is watched."""
        lasted = now - self._began
        return f"  {lasting(lasted)}" if lasted >= SHORT_S else ""

    def _left(self, done: float, total: float, now: float) -> float:
        """Seconds to the end at the speed until now; 0 where there is none to go by."""
        seconds, gained = now - self._began, done - self._first
        return (total - done) * seconds / gained if gained > 0 and seconds > 1 and done < total else 0.0


class WatchedAction(LeanAction):
    """Runs the module of the plugin's own name, reading its progress file over the same connection."""

    _supports_check_mode = True
    #: For the callback, which shows of the other steps how long they take.
    watched = True
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
        host, board = str(task_vars.get("inventory_hostname", "")), bars.board()
        pace, shown = None, 0.0
        while not done.wait(POLL_S):
            try:
                status, text, _ = self._connection.exec_command(f"cat {path}", sudoable=False)
            except (AnsibleError, OSError):
                break  # that the connection is gone, the module's own call tells
            now = time.monotonic()
            try:
                state = json.loads(text) if status == 0 else None
            except ValueError:
                continue
            if not state:
                continue
            if new := pace is None or state.get("stage") != pace.stage:
                pace = Pace(state, now)
            assert pace is not None
            if board:
                board.show(host, f"  {host}  {pace.describe(state, now, drawn=True)}")
            elif new or now - shown >= INTERVAL_S:
                shown = now
                Display().display(f"  {host}  {pace.describe(state, now)}")
        if board:
            board.show(host, "")
