"""The parts of a box in a report: what each holds, and how it is told in a line before it is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from boxwright.doctor.host import examine

#: In the order in which they stand in the file.
PARTS = ("diagnosis", "facts", "plan", "release", "bench", "logs", "readings")
#: Logs of the whole host among the readings.
_OF_HOST = ("kernel", "docker", "previous_boot")


def parts(
    raw: Mapping[str, Any], plan: Mapping[str, Any], benches: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """A box by part. raw: of the module diagnosis; benches: of the module bench_runs, one a deployment."""
    deployments, found = examine(raw)
    read = [one for one in raw.get("deployments") or () if isinstance(one, Mapping)]
    return {
        "diagnosis": {"deployments": [one.to_json() for one in deployments], **found.to_json()},
        "facts": plan.get("facts"),
        "plan": {key: value for key, value in plan.items() if key != "facts"},
        "release": {str(one.get("name")): one.get("releases") or [] for one in read},
        "bench": {
            str(one["deployment"]): {"kept": one.get("runs") or [], "last": _last(one)}
            for one in benches
            if one.get("deployment")
        },
        "logs": dict(_logs(raw, read)),
        "readings": {
            **{key: value for key, value in raw.items() if key not in _OF_HOST},
            "deployments": [
                {key: value for key, value in one.items() if key not in ("journal", "releases")}
                for one in read
            ],
        },
    }


def outline(part: str, value: Any) -> str:
    """What a part holds, in a line."""
    return _OUTLINES[part](value) if value else "nothing"


def _last(one: Mapping[str, Any]) -> Any:
    return next(iter((one.get("found") or {}).get("last") or ()), None)


def _logs(raw: Mapping[str, Any], read: Iterable[Mapping[str, Any]]) -> Iterable[tuple[str, Any]]:
    for name in _OF_HOST:
        if raw.get(name):
            yield name, raw[name]
    for one in read:
        if one.get("journal"):
            yield f"journal of {one.get('name')}", one["journal"]


def _counted(count: int, what: str, many: str = "") -> str:
    return f"{count:,} {what if count == 1 else many or what + 's'}"


def _diagnosis(value: Mapping[str, Any]) -> str:
    states = [f"{one['name']} {one['state']}" for one in value["deployments"]]
    return "; ".join([_counted(len(value["causes"]), "cause"), *states])


def _facts(value: Mapping[str, Any]) -> str:
    return _counted(len(value), "kind of fact", "kinds of facts")


def _plan(value: Mapping[str, Any]) -> str:
    kinds = {"deployments": "deployment", "changes": "change", "gates": "gate", "advice": "advice"}
    return ", ".join(
        _counted(len(value[kind]), one, kind)
        for kind, one in kinds.items()
        if isinstance(value.get(kind), list)
    )


def _release(value: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    return "; ".join(
        f"{name}: " + (", ".join(str(one.get("id")) for one in records) or "none has served")
        for name, records in value.items()
    )


def _bench(value: Mapping[str, Mapping[str, Any]]) -> str:
    return "; ".join(
        f"{name}: {_counted(len(one['kept']), 'run')}{', the last whole' if one['last'] else ''}"
        for name, one in value.items()
    )


def _of_logs(value: Mapping[str, Any]) -> str:
    return "; ".join(
        f"{name} {_counted(len(str((log or {}).get('text') or '').splitlines()), 'line')}"
        for name, log in value.items()
    )


def _readings(value: Mapping[str, Any]) -> str:
    return "nvidia-smi, throttling, filesystems, units, containers, counters"


_OUTLINES: Mapping[str, Callable[[Any], str]] = {
    "diagnosis": _diagnosis,
    "facts": _facts,
    "plan": _plan,
    "release": _release,
    "bench": _bench,
    "logs": _of_logs,
    "readings": _readings,
}
