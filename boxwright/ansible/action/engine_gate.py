"""Shows how far the start of an engine is, and says why one does not serve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boxwright.ansible.action.watched import WatchedAction
from boxwright.doctor.telling import cause_of

#: Failures whose cause may be in the last lines of the log, whatever these are; the others say it themselves.
UNFINISHED = ("crashed", "hung", "slow")
LAST_LINES = 5


class ActionModule(WatchedAction):
    """Runs engine_gate with progress; the logs of releases that do not serve are diagnosed here."""

    module_name = "engine_gate"

    def finish(self, result: dict[str, Any], task_vars: dict[str, Any]) -> dict[str, Any]:
        """Put the causes into the message, and leave the logs themselves out of the result."""
        failures = [failure for failure in result.get("failures") or [] if isinstance(failure, Mapping)]
        if not failures:
            return result
        kept = [{key: one[key] for key in one if not key.endswith("log")} for one in failures]
        return dict(result, msg="\n\n".join(message(one) for one in failures), failures=kept)


def message(failure: Mapping[str, Any]) -> str:
    """What a person reads about a release that does not serve: why, what became of it, where to look."""
    last = LAST_LINES if failure.get("kind") in UNFINISHED else 0
    lines = [str(failure["what"]), *cause_of(_lines(failure, "log"), last)]
    after = [str(failure["after"]), *cause_of(_lines(failure, "after_log"), LAST_LINES)]
    nothing_serves = after[0].startswith("NOTHING")
    return "\n".join([*(after + lines if nothing_serves else lines + after), str(failure["where"])])


def _lines(failure: Mapping[str, Any], name: str) -> list[str]:
    return [str(line) for line in failure.get(name) or []]
