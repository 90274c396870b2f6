"""What the tables of this folder (cases/*.yml, seeds.yml) share: declarations and facts by their changes."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from boxwright import catalog, planner
from boxwright.facts import HostFacts

CATALOG = catalog.load()
SYSTEM = {
    "id": "debian",
    "version_id": "13",
    "codename": "trixie",
    "architecture": "x86_64",
    "kernel": "6.12",
}


def _merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    found = copy.deepcopy(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(found.get(key), dict)
        found[key] = _merged(found[key], value) if both else copy.deepcopy(value)
    return found


def _variables(bases: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    """A box's variables: those of the base with the changes; `deployment` changes the base's first one."""
    changes = dict(spec)
    base = bases.get(changes.pop("base", None), {})
    deployment = changes.pop("deployment", None)
    merged = _merged(base, changes)
    if deployment is not None:
        merged["box_deployments"] = [_merged((base.get("box_deployments") or [{}])[0], deployment)]
    return merged


def _facts_of(box: Any, changes: dict[str, Any] | None) -> HostFacts:
    """The facts of the declared cards with changes, as `to_json` has them; with any the host was asked."""
    offline = planner.offline_facts(box, CATALOG)
    if changes is None:
        return offline
    plain = dict(offline.to_json(), recorded=True, os=SYSTEM)
    for key, value in changes.items():
        if key == "cards":
            plain["cards"] = [
                _merged(plain["cards"][n] if n < len(plain["cards"]) else {}, one)
                for n, one in enumerate(value)
            ]
        elif isinstance(value, dict) and isinstance(plain.get(key), dict):
            plain[key] = _merged(plain[key], value)
        else:
            plain[key] = value
    return HostFacts.from_json(plain)


@pytest.fixture(scope="session")
def variables():
    """The variables of a row's `spec`."""
    return _variables


@pytest.fixture(scope="session")
def facts_of():
    """The facts of a box with a row's `facts`."""
    return _facts_of
