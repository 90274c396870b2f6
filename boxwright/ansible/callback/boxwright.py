"""What a person reads during a run: a line a role and host, what changed, and why something failed.

With BOXWRIGHT_REPORT set, the run is also told as JSON to that file when it ends.
"""

from __future__ import annotations

import json
import os
import textwrap
import time
from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase
from ansible.plugins.loader import action_loader

from boxwright.ansible import bars, failures, lost_runs, running, runs
from boxwright.planner.changes.drift import ROLES
from boxwright.texts import printable, unframed

DOCUMENTATION = """
    name: boxwright
    type: stdout
    short_description: a line a role and host, what changed, and why something failed
    description: Shows what a run does as a person would tell it, and keeps the run as JSON.
"""

#: Results that verbs read from the report, by the module's (or action's) name.
KEPT_RESULTS = (
    "plan", "engine_gate", "engine_rollback", "host_facts", "slurp", "diagnosis", "box_status",
    "engine_journal", "model_listing", "lock_update",
    "engine_bench", "bench_runs", "engine_trial", "run_history", "gateway_server",
)  # fmt: skip
#: The file of tasks that visits the roles before the engine, passed over where it has none to visit.
VISITED = "tasks/visited.yml"
WENT_AWAY = (
    "It answered before, in this same run: it went down or boots anew, or the network between did. A run\n"
    "  from another machine may have rebooted it (`last -x` there tells). Once it is back, the same command\n"
    "  carries on."
)
GREEN, YELLOW, RED, PLAIN = "32", "33", "31", ""


class CallbackModule(CallbackBase):  # type: ignore[misc]  # ansible-core ships no types
    """Collects each host's tasks by role and prints a role's line when the next role begins."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "boxwright"

    def __init__(self) -> None:
        super().__init__()
        self._started = time.time()
        self._role: str | None = None
        self._role_started = time.time()
        self._task_started: dict[str, float] = {}
        self._role_tally: dict[str, dict[str, int]] = {}
        self._hosts: dict[str, dict[str, Any]] = {}
        #: Host -> its run that has begun in its history and not ended there.
        self._open: dict[str, dict[str, Any]] = {}
        self._running = running.Running()
        self._ticker = running.Ticker(self._running, self._say, bars.board(), self._display._lock)
        # What a run leaves on a host when it ends is made of this.
        runs.seen = self._hosts

    # -- what Ansible calls ---------------------------------------------------------------------

    def v2_playbook_on_play_start(self, play: Any) -> None:
        """A new play: the last role's lines are due."""
        self._close_role()

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        """A task begins: see whether a new role does."""
        role = task._role.get_name() if task._role else None
        if role != self._role:
            self._close_role()
            self._role, self._role_started = role, time.time()
        self._task_started[task._uuid] = time.time()

    def v2_playbook_on_handler_task_start(self, task: Any) -> None:
        """A handler counts to the role that notified it."""
        self.v2_playbook_on_task_start(task, False)

    def v2_runner_on_start(self, host: Any, task: Any) -> None:
        """A step begins on a host: after a while it is shown, where its module does not show itself."""
        plugin = action_loader.get(task.action, class_only=True)
        if not getattr(plugin, "watched", False):
            self._running.begin(host.get_name(), task.name or task.action, time.monotonic())
            self._ticker.start()

    def v2_runner_on_ok(self, result: Any) -> None:
        """A task did its work: tell it when it changed something."""
        data, host = result.result, self._host(result)
        kind = "changed" if data.get("changed") else "ok"
        self._count(result, kind)
        action = result.task.action.rpartition(".")[2]
        if action == "run_record" and data.get("record"):
            if data["record"]["event"] == "begun":
                self._open[result.host.get_name()] = data["record"]
            else:
                self._open.pop(result.host.get_name(), None)
        if action in KEPT_RESULTS:
            host["results"].setdefault(action, []).append(self._plain(data))
        if kind == "changed":
            seconds = time.time() - self._task_started.get(result.task._uuid, time.time())
            name = result.task.name
            changed = {
                "role": self._role,
                "task": name,
                "action": action,
                "seconds": round(seconds, 1),
                "said": data.get("said"),
                "check": bool(result.task.check_mode),
            }
            host["changed_tasks"].append(changed)
            self._say(
                f"      {self._prefix(result)}{name}{self._detail(data)}  {_worth_telling(seconds)}".rstrip(),
                YELLOW,
            )
        # A role that has something to tell beside what it changes tells it by a task of the module debug.
        told = [data["msg"]] if action == "debug" and isinstance(data.get("msg"), str) else []
        for note in [*told, *(data.get("warnings") or [])]:
            self._say(f"      {self._prefix(result)}note: {note}", YELLOW)

    def v2_on_file_diff(self, result: Any) -> None:
        """With --check: what a file would become."""
        diff = result.result.get("diff")
        text = self._get_diff(diff) if diff and not result.task.no_log else ""
        if text:
            self._say(text.rstrip())

    def v2_runner_on_skipped(self, result: Any) -> None:
        """Skipped tasks are counted, not shown; a role of the plan that is not visited is as declared.

        A part of a role that is skipped says nothing of the rest.
        """
        self._count(result, "skipped")
        args = result.task.args
        action, role = result.task.action.rpartition(".")[2], str(args.get("name"))
        if action == "include_role" and role in ROLES and "tasks_from" not in args:
            self._tell_role(result.host.get_name(), role, {}, None)
        elif action == "include_tasks" and result.task.args.get("_raw_params") == VISITED:
            for one in ROLES[:-1]:
                self._tell_role(result.host.get_name(), one, {}, None)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """A task failed: its message, and nothing else."""
        data = result.result
        if ignore_errors or result.task.ignore_errors:
            self._ticker.ended(result.host.get_name())
            return
        self._count(result, "failed")
        action, check = result.task.action.rpartition(".")[2], bool(result.task.check_mode)
        failure = failures.record(self._role, result.task.name, action, data, check=check)
        self._host(result).update(failure=failure)
        self._host(result)["failures"].append(failure)
        title = "refused" if data.get("refused") else f"failed at: {result.task.name}"
        self._say(f"\n{result.host.get_name()}: {title}\n", RED)
        self._say("\n".join(f"  {line}" for line in failure["message"].splitlines()) + "\n")

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """No connection: say so in one place, with what SSH said."""
        if result.task.ignore_unreachable:
            # Another host, which the run does without; the role tells what that means.
            self._ticker.ended(result.host.get_name())
            return
        message = " ".join(str(result.result.get("msg", "")).split())
        self._count(result, "unreachable")
        host = self._host(result)
        host["failure"] = {
            "role": self._role,
            "task": result.task.name,
            "action": result.task.action.rpartition(".")[2],
            "message": message,
            "kind": "unreachable",
            # It may have gone away in the middle of it.
            "touched": None if set(host["results"]) - {"plan"} else False,
            "after": [],
        }
        nothing = "" if host["changed_tasks"] else ", nothing was changed"
        self._say(f"\n{result.host.get_name()}: cannot be reached over SSH{nothing}\n", RED)
        said = unframed(message)
        self._say(textwrap.fill(said, 100, initial_indent="  ", subsequent_indent="  ") + "\n")
        # What a module on the host said: a plan is made here.
        if set(host["results"]) - {"plan"}:
            self._say(f"  {WENT_AWAY}\n")

    def v2_playbook_on_no_hosts_matched(self) -> None:
        """A play that matches nothing did nothing; a verb that reads the report says so."""
        self._say("no host of the inventory matches", RED)

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """The end: the last role's lines, and the report."""
        self._ticker.stop()
        self._close_role()
        report = os.environ.get("BOXWRIGHT_REPORT")
        for name, host in self._hosts.items():
            summary = stats.summarize(name)
            host["changed"] = summary["changed"]
            host["tasks"] = summary["ok"] + summary["skipped"]
        for name, record in self._open.items():
            self._keep_end(record, self._hosts[name])
        if report:
            text = json.dumps(
                {"seconds": round(time.time() - self._started, 1), "hosts": self._hosts}, default=str
            )
            Path(report).write_text(text, encoding="utf-8")

    def _keep_end(self, record: dict[str, Any], host: dict[str, Any]) -> None:
        """The end of a run whose host went away, for the next run to take there."""
        if (host["failure"] or {}).get("kind") != "unreachable":
            return
        # What tasks said may hold what only the host's own variables tell to be a secret.
        silent = [{**one, "said": None} for one in host["changed_tasks"]]
        line = runs.ended(record["run"], {**host, "changed_tasks": silent})
        try:
            lost_runs.keep(record["place"], line)
        except OSError as error:
            self._say(f"      note: how this run ended is kept nowhere: {error}", YELLOW)

    # -- how it is drawn ------------------------------------------------------------------------

    def _say(self, text: str, colour: str = PLAIN) -> None:
        # What a host says (an engine's log, a banner) steers no terminal.
        text = "\n".join(printable(line.expandtabs()) for line in text.split("\n"))
        if colour and os.environ.get("BOXWRIGHT_COLOUR") == "1":
            text = f"\033[{colour}m{text}\033[0m"
        # Bars that hosts have below the cursor make room, and come again below.
        self._display.display((bars.CLEAR if bars.terminal() else "") + text)

    def _host(self, result: Any) -> dict[str, Any]:
        return self._hosts.setdefault(
            result.host.get_name(),
            {
                "changed": 0,
                "tasks": 0,
                "changed_tasks": [],
                "roles": [],
                "results": {},
                "failure": None,
                "failures": [],
            },
        )

    def _count(self, result: Any, kind: str) -> None:
        """A task has ended on a host."""
        self._ticker.ended(result.host.get_name())
        self._host(result)
        tally = self._role_tally.setdefault(result.host.get_name(), {})
        tally[kind] = tally.get(kind, 0) + 1

    def _close_role(self) -> None:
        if self._role is not None:
            seconds = time.time() - self._role_started
            for host, tally in self._role_tally.items():
                self._tell_role(host, self._role, tally, seconds)
        self._role, self._role_tally = None, {}

    def _tell_role(self, host: str, role: str, tally: dict[str, int], seconds: float | None) -> None:
        """Tell of a role on a host. tally: tasks by their end; seconds: None where it was not visited."""
        state, colour = _outcome(tally)
        took = "" if seconds is None else f"{seconds:7.1f} s"
        self._say(f"{host:<12}  {role:<18} {state:<12} {took}".rstrip(), colour)
        self._hosts[host]["roles"].append(
            {
                "role": role,
                "changed": tally.get("changed", 0),
                "seconds": round(seconds or 0.0, 1),
                "visited": seconds is not None,
            }
        )

    def _prefix(self, result: Any) -> str:
        return f"{result.host.get_name()}: " if len(self._hosts) > 1 else ""

    def _detail(self, data: dict[str, Any]) -> str:
        said = data.get("said")
        return f": {said}" if isinstance(said, str) and said else ""

    def _plain(self, data: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in data.items() if not key.startswith("_ansible")}


def _outcome(tally: dict[str, int]) -> tuple[str, str]:
    """What came of a role on a host, in two words at most, and its colour. tally: tasks by how they ended."""
    for word in ("unreachable", "failed"):
        if tally.get(word):
            return word, RED
    changed = tally.get("changed", 0)
    return (f"{changed} changed", YELLOW) if changed else ("as declared", GREEN)


def _worth_telling(seconds: float) -> str:
    """Seconds, told only when they are worth it."""
    return f"({seconds:.0f} s)" if seconds >= 1 else ""
