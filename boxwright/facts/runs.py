"""What ran on a host, and how it ended: the lines of its history, two a run, as typed values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

#: Outcomes of runs without an end: its process lives, it does not, nobody can tell from here.
RUNNING, KILLED, OPEN = "running", "killed", "not ended"


@dataclass(frozen=True)
class Checkout:
    """An inventory within a git checkout. edited: what was declared differs from that commit."""

    name: str
    commit: str
    edited: bool


@dataclass(frozen=True)
class ReleaseStep:
    """A deployment whose engine was started: the release that served before (None: none), and after."""

    deployment: str
    before: str | None
    after: str


@dataclass(frozen=True)
class Failure:
    """Where and why a run failed."""

    role: str | None
    task: str
    message: str


@dataclass(frozen=True)
class PastRun:
    """One run on one host. begun: seconds since 1970. seconds: how long it took, None for one without an end.

    changed: role -> number of changes. did: what it did, in words.
    """

    id: str
    verb: str
    by: str
    begun: float
    outcome: str
    seconds: float | None
    options: tuple[str, ...]
    inventory: tuple[Checkout, ...]
    changed: Mapping[str, int]
    releases: tuple[ReleaseStep, ...]
    did: tuple[str, ...]
    failure: Failure | None

    def to_json(self) -> dict[str, Any]:
        """By stable keys."""
        return asdict(self)


def past_runs(lines: Iterable[str], alive: Callable[[str, int], bool | None]) -> list[PastRun]:
    """The runs that the lines tell of, the oldest first; lines that are none are left out.

    alive: whether a controller (its name) still has a process; None where that cannot be seen.
    """
    begun: dict[str, Mapping[str, Any]] = {}
    ended: dict[str, Mapping[str, Any]] = {}
    for line in lines:
        found = _object(line)
        kept = {"begun": begun, "ended": ended}.get(_text(found.get("event")))
        if kept is not None and _text(found.get("run")):
            kept[_text(found["run"])] = found
    order = list(begun)
    return [
        _run(begun[name], ended.get(name), alive, last=index == len(order) - 1)
        for index, name in enumerate(order)
    ]


def _run(
    start: Mapping[str, Any],
    end: Mapping[str, Any] | None,
    alive: Callable[[str, int], bool | None],
    *,
    last: bool,
) -> PastRun:
    at, found = _number(start.get("at")), end or {}
    if end is not None:
        outcome = _text(end.get("outcome")) if end.get("outcome") in ("ok", "failed", "refused") else OPEN
    else:
        lives = alive(_text(start.get("controller")), int(_number(start.get("process"))))
        outcome = RUNNING if lives else KILLED if lives is False or not last else OPEN
    failure = found.get("failure")
    return PastRun(
        id=_text(start.get("run")),
        verb=_text(start.get("verb")),
        by=f"{_text(start.get('user'))}@{_text(start.get('controller'))}",
        begun=at,
        outcome=outcome,
        seconds=round(max(0.0, _number(found.get("at")) - at), 1) if end is not None else None,
        options=tuple(_text(one) for one in _list(start.get("options"))),
        inventory=tuple(
            Checkout(_text(one.get("name")), _text(one.get("commit")), bool(one.get("edited")))
            for one in _list(start.get("inventory"))
            if isinstance(one, Mapping)
        ),
        changed={str(role): int(_number(count)) for role, count in _mapping(found.get("changed")).items()},
        releases=tuple(
            ReleaseStep(
                _text(one.get("deployment")), _text(one.get("before")) or None, _text(one.get("after"))
            )
            for one in _list(found.get("releases"))
            if isinstance(one, Mapping)
        ),
        did=tuple(_text(one) for one in _list(found.get("did"))),
        failure=Failure(
            _text(failure.get("role")) or None, _text(failure.get("task")), _text(failure.get("message"))
        )
        if isinstance(failure, Mapping)
        else None,
    )


def _object(line: str) -> Mapping[str, Any]:
    try:
        return _mapping(json.loads(line))
    except (ValueError, RecursionError):
        return {}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> float:
    known = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e12
    return float(value) if known and isinstance(value, (int, float)) else 0.0
