"""What a run leaves in a box's history: a line when it begins, a line when it has ended.

The line of the end is made of what the callback has seen of the host until then. Both are of one process:
Ansible forks the worker that writes the line when its task begins, with what the callback knew by then.
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterable, Mapping
from typing import Any

from boxwright.facts.parsers.masking import mask

DIRECTORY = "/var/log/boxwright"
#: The variable by which a verb says who runs what (cli.recording); a run without it leaves nothing.
VARIABLE = "boxwright_run"
#: What a verb of several playbooks says of the whole run, for the line of its end.
VERB = "boxwright_run_end"
#: Bytes of the file beyond which it makes room for a new one; the one before it is kept.
MOST_BYTES = 512 << 10
#: Longest text, and most of a kind, that a line keeps.
LONGEST, MOST = 300, 12
#: Seconds for another run that writes its line at this moment.
PATIENCE_S = 5

#: Host -> what the callback has seen of it: changed_tasks, results, failure.
seen: Mapping[str, Mapping[str, Any]] = {}


def begun(run: Mapping[str, Any]) -> dict[str, Any]:
    """The line of a run that begins now. run: as of `cli.recording.run`."""
    return {"event": "begun", "at": round(time.time(), 1), **run}


def ended(
    run: Mapping[str, Any],
    host: Mapping[str, Any],
    secrets: Iterable[str] = (),
    verb: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The line of a run that ends now. host: what was seen of it.

    verb: what the verb itself says of a run of several playbooks: did, failure (as the callback's).
    """
    hidden, now = list(secrets), time.time()

    def told(value: object) -> str:
        text = " ".join(mask(str(value or ""), hidden).split())
        return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"

    # What a task only looked at in check mode, it did not do.
    changed = [one for one in host.get("changed_tasks") or () if not one.get("check")]
    said = verb or {}
    failure = host.get("failure") or said.get("failure")
    counts: dict[str, int] = {}
    for one in changed:
        role = str(one.get("role") or "other")
        counts[role] = counts.get(role, 0) + 1
    results = host.get("results") or {}
    kind = str((failure or {}).get("kind") or "failed")
    return {
        "event": "ended",
        "run": run.get("run"),
        "at": round(now, 1),
        "outcome": "ok" if not failure else "refused" if kind == "refused" else "failed",
        "changed": counts,
        "did": [told(text) for text in [*(said.get("did") or ()), *_said(changed), *_did(results)]][:MOST],
        "releases": list(_releases(results))[:MOST],
        "failure": {
            "role": failure.get("role"),
            "task": told(failure.get("task")),
            "message": told(cause(str(failure.get("message") or ""), kind)),
        }
        if failure
        else None,
    }


def cause(message: str, kind: str) -> str:
    """The line of a message that tells most: its first; of a refusal, which gate, and its why."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return " ".join(lines[1:4]) if kind == "refused" and len(lines) > 1 else next(iter(lines), "")


def _said(changed: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    return (str(one["said"]) for one in changed if one.get("said"))


def _did(results: Mapping[str, Any]) -> Iterable[str]:
    """What verbs did that no task tells as a change."""
    for one in results.get("engine_bench", ()):
        yield f"measured: {(one.get('run') or {}).get('id')}"
    for one in results.get("model_listing", ()):
        for directory in one.get("freed") or ():
            yield f"freed {directory}"
    for one in results.get("lock_update", ()):
        for move in one.get("moves") or ():
            if move.get("before") != move.get("after"):
                yield f"{move.get('name')}: locked at {str(move.get('after'))[:10]}"


def _releases(results: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """Deployments whose engine was started, with the release that served before, and after."""
    for name in ("engine_gate", "engine_rollback"):
        for result in results.get(name, ()):
            for one in result.get("results") or ():
                if one.get("changed") and one.get("release"):
                    yield {
                        "deployment": one.get("name"),
                        "before": one.get("before"),
                        "after": one["release"],
                    }


def script(lines: Iterable[Mapping[str, Any]], directory: str = DIRECTORY) -> str:
    """What a shell does to append lines: alone, whole, in a file of root's that does not grow for ever."""
    texts = [shlex.quote(json.dumps(line, ensure_ascii=True, sort_keys=True)) for line in lines]
    return "\n".join(
        [
            "umask 077",
            f"mkdir -p {shlex.quote(directory)} && cd {shlex.quote(directory)} || exit 1",
            f"exec 9>>runs.lock && flock -w {PATIENCE_S} 9 || exit 1",
            # A run that was killed while it wrote has left a line without an end.
            '[ -s runs.jsonl ] && [ -n "$(tail -c 1 runs.jsonl)" ] && echo >>runs.jsonl',
            f'[ "$(stat -c %s runs.jsonl 2>/dev/null || echo 0)" -lt {MOST_BYTES} ] '
            "|| mv -f runs.jsonl runs.jsonl.1 || exit 1",
            f"printf '%s\\n' {' '.join(texts)} >>runs.jsonl",
            "",
        ]
    )
