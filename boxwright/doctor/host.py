"""A host's report out of what the module diagnosis read there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from boxwright.doctor import readings
from boxwright.doctor.diagnosis import Report
from boxwright.doctor.doctor import diagnose
from boxwright.doctor.log import Log


@dataclass(frozen=True)
class Deployment:
    """How a deployment fares. state: serving, loading, failed or stopped; what: in systemd's words."""

    name: str
    release: str | None
    state: str
    what: str

    def to_json(self) -> dict[str, Any]:
        """By stable keys."""
        return {"name": self.name, "release": self.release, "state": self.state, "what": self.what}


def examine(raw: Mapping[str, Any]) -> tuple[list[Deployment], Report]:
    """States of the deployments, and what is wrong with the host."""
    logs, values = [], {"host": readings.of_host(raw)}
    deployments = []
    began = [
        readings.finite(unit.get("began")) for one in _deployments(raw) if (unit := _unit(one)).get("running")
    ]
    for one in _deployments(raw):
        name = str(one.get("name"))
        values[name] = readings.of_deployment(one)
        deployments.append(state_of(one, values[name]))
        logs += _logs(one, name, serving=bool(values[name].get("serving")))
    logs += [
        _log(raw, "kernel", "kernel", "kernel log"),
        _log(raw, "smi", "nvidia-smi", "nvidia-smi"),
        _log(raw, "docker", "docker", "Docker's journal"),
    ]
    serving = bool(deployments) and all(one.state == "serving" for one in deployments)
    since = min((moment for moment in began if moment), default=None) if serving else None
    return deployments, diagnose(logs, values, since=since)


def _logs(one: Mapping[str, Any], name: str, *, serving: bool) -> list[Log]:
    journal = str(_mapping(one, "journal").get("text") or "")
    # What the unit's programs say stands in its journal, whichever of them it is.
    found = [Log(f"journal of {name}", journal.encode(), "engine", "unit", "docker", "hub")]
    failure = _mapping(one, "failure")
    if not serving and failure.get("log"):
        label = f"release {failure.get('release')} of {name}, failed {failure.get('when')}"
        found.append(Log(label, str(failure["log"]).encode(), "engine", "unit", "docker", "hub"))
    container = _mapping(one, "container")
    if container.get("message"):
        found.append(Log(f"container of {name}", str(container["message"]).encode(), "docker"))
    return found


def state_of(one: Mapping[str, Any], values: Mapping[str, Any]) -> Deployment:
    """How a deployment fares. one: as it was read; values: what readings.of_deployment made of it."""
    unit = _unit(one)
    if values.get("serving"):
        state, what = "serving", ""
    elif unit.get("running") or (unit.get("active") == "activating" and unit.get("sub") != "auto-restart"):
        state, what = "loading", "its unit runs and it does not answer yet"
    elif unit.get("load") == "not-found" or (unit.get("active") == "inactive" and not unit.get("restarts")):
        state, what = "stopped", "its unit is not there" if unit.get("load") == "not-found" else ""
    else:
        state, what = "failed", str(unit.get("ending") or unit.get("error") or "")
    return Deployment(str(one.get("name")), one.get("release"), state, what)


def _log(raw: Mapping[str, Any], key: str, kind: str, name: str) -> Log:
    return Log(name, str(_mapping(raw, key).get("text") or "").encode(), kind)


def _deployments(raw: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = raw.get("deployments")
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, (list, tuple)) else []


def _unit(one: Mapping[str, Any]) -> Mapping[str, Any]:
    return _mapping(one, "unit")


def _mapping(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = value.get(name)
    return found if isinstance(found, Mapping) else {}
