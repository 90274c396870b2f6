"""What a failed task has to say: why, whether it had changed anything by then, and what became of that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

#: Modules and actions that only look: whatever they fail of, they have left nothing behind.
LOOKING = frozenset({
    "assert", "bench_runs", "box_status", "debug", "diagnosis", "engine_journal", "fail", "host_facts",
    "include_role", "import_role", "nvidia_cards", "plan", "run_history", "set_fact", "slurp", "stat",
})  # fmt: skip
#: Of a task that was given up after a time.
SILENT = (
    "it gave no answer within {seconds} s, though SSH let the run in: the box hangs, or has too much to do.\n"
    "Look there: uptime, dmesg, and what waits for a disk or a card (ps -eo state,pid,args | grep ^D)"
)
#: What a module says that has seen to it itself.
NOTHING = "Nothing was changed"


def record(
    role: str | None, task: str, action: str, data: Mapping[str, Any], *, check: bool = False
) -> dict[str, Any]:
    """A failure as the report keeps it. touched: whether the task had changed something; None: unknown.

    after: what became of what it had begun, in its own words (of a release that does not serve).
    """
    return {
        "role": role,
        "task": task,
        "action": action,
        "message": text(data),
        "kind": "refused" if data.get("refused") else "failed",
        "touched": touched(action, data, check=check),
        "after": [str(one["after"]) for one in _mappings(data.get("failures")) if one.get("after")],
    }


def touched(action: str, data: Mapping[str, Any], *, check: bool = False) -> bool | None:
    """Whether a task that failed had changed something; None where nothing tells."""
    if check or action in LOOKING:
        return False
    items = list(_mappings(data.get("results"))) or [data]
    found = [_touched(one) for one in items]
    return True if True in found else None if None in found else False


def _touched(data: Mapping[str, Any]) -> bool | None:
    if isinstance(data.get("touched"), bool):
        return bool(data["touched"])
    if data.get("changed") or data.get("done"):
        return True
    return False if data.get("refused") or NOTHING in str(data.get("msg")) else None


def _mappings(value: object) -> Iterable[Mapping[str, Any]]:
    return (one for one in value if isinstance(one, Mapping)) if isinstance(value, (list, tuple)) else ()


def text(data: Mapping[str, Any]) -> str:
    """What a failed task has to say: its message, or for a loop the message of each item that failed."""
    items = [item for item in _mappings(data.get("results")) if item.get("failed")]
    if items:
        return "\n".join(text(item) for item in items)
    if data.get("censored"):
        return str(data["censored"])
    if isinstance(data.get("timedout"), Mapping):
        return SILENT.format(seconds=data["timedout"].get("period"))
    said = str(data.get("msg") or data.get("reason") or "").strip()
    if "Traceback" in said or not said:
        parts = [
            str(data.get(key) or "").strip() for key in ("module_stderr", "module_stdout", "stderr", "stdout")
        ]
        said = last_line(next((part for part in parts if part), said)) or "it failed without a message"
    elif data.get("stderr"):
        said += "\n" + str(data["stderr"]).strip()
    elif data.get("module_stderr") or data.get("module_stdout"):
        # The module never answered: sudo, a shell or Python spoke in its place.
        said += "\n" + last_line(str(data.get("module_stderr") or data["module_stdout"]))
    return said


def last_line(said: str) -> str:
    """The last line with words: a Python traceback ends with what went wrong."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[-1] if lines else ""
