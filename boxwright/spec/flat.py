"""A deployment as options, each by one name: what two declarations differ in, and one with some changed.

`concurrency`, `kv_cache` and the like are options as they are; every extra argument and every variable is one
of its own (`extra_args.enforce-eager`, `env.NCCL_DEBUG`); drafting is one, for its parts mean nothing alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from boxwright.spec.box import Deployment, ModelRef, Secret

#: What a deployment is called, where it listens and how it is examined: none of it makes an engine slower.
APART = ("name", "port", "bind", "api_key", "open_paths", "outgoing", "gate_prompt", "gate_expect")
#: Mappings each of whose entries is an option.
SPREAD = ("extra_args", "env")
#: Variables that limit the cards; they are the box's, and no option of a deployment.
LIMITS = "gpu_tuning_"


def flat(deployment: Mapping[str, Any]) -> dict[str, Any]:
    """Option -> value of a deployment as it is declared; what is left out, or null, is no option of it."""
    found: dict[str, Any] = {}
    for name, value in deployment.items():
        if name in APART or value is None:
            continue
        if name in SPREAD and isinstance(value, Mapping):
            found.update({f"{name}.{_spelt(name, str(key))}": item for key, item in value.items()})
        else:
            found[str(name)] = _plain(value)
    if found.get("speculative") in ({}, {"method": "none"}):
        del found["speculative"]
    return found


def changed(deployment: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The deployment with some options changed; None leaves one out. Raises ValueError for a wrong name."""
    known = {one.name for one in fields(Deployment)} - set(APART)
    found = {name: dict(value) if name in SPREAD else value for name, value in deployment.items()}
    for option, value in changes.items():
        place, _, key = option.partition(".")
        if place not in known or bool(key) is not (place in SPREAD):
            raise ValueError(f"no deployment has an option {option!r}")
        if not key:
            found[place] = value
            if value is None:
                del found[place]
            continue
        inner = {name: one for name, one in found.get(place, {}).items() if _spelt(place, str(name)) != key}
        found[place] = inner if value is None else {**inner, key: value}
    return found


def differing(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Option -> its value in both, for each that they differ in; None where one side does not say it."""
    ours, theirs = flat(first), flat(second)
    names = dict.fromkeys([*ours, *theirs])
    return {name: (ours.get(name), theirs.get(name)) for name in names if ours.get(name) != theirs.get(name)}


def varied(variables: Mapping[str, Any], deployment: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """A host's variables with some options of a deployment changed; limits of the cards are variables.

    Raises ValueError for a wrong name of an option, LookupError where there is no such deployment.
    """
    found = dict(variables)
    limits = {name: value for name, value in changes.items() if name.startswith(LIMITS)}
    own = {name: value for name, value in changes.items() if name not in limits}
    declared = list(found.get("box_deployments") or ())
    place = next((at for at, one in enumerate(declared) if one.get("name") == deployment), None)
    if place is None:
        raise LookupError(f"no deployment is named {deployment!r}")
    declared[place] = changed(declared[place], own)
    found["box_deployments"] = declared
    for name, value in limits.items():
        found[name] = value
        if value is None:
            del found[name]
    return found


def written(deployment: Deployment) -> dict[str, Any]:
    """A deployment as an inventory says it, without its key; what is as by default is left out."""
    default = Deployment("", ModelRef(), "")
    return {
        one.name: _plain(getattr(deployment, one.name))
        for one in fields(Deployment)
        if one.name != "api_key" and getattr(deployment, one.name) != getattr(default, one.name)
    }


def _spelt(place: str, key: str) -> str:
    """An extra argument under the one spelling of its name; dots part a name from a key below it."""
    if place != "extra_args":
        return key
    name, dot, rest = key.lstrip("-").partition(".")
    return name.replace("_", "-") + dot + rest


def _plain(value: Any) -> Any:
    if isinstance(value, ModelRef) and value.name:
        return value.name
    if is_dataclass(value) and not isinstance(value, (type, Secret)):
        known = {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
        return {name: item for name, item in known.items() if item is not None}
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
