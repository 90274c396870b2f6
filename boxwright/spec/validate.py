"""All mistakes of an inventory at once, each with its place, without a connection to any host."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from boxwright.catalog import cards as card_kinds
from boxwright.catalog import models as catalog_models
from boxwright.spec import calibration
from boxwright.spec import schema as schemas
from boxwright.spec.box import Box, box_from_variables
from boxwright.spec.inventory import OWN_PREFIXES, Inventory
from boxwright.spec.judge import mistakes, path_text
from boxwright.spec.places import Location
from boxwright.spec.problem import MASK, Problem, SpecErrors, shown
from boxwright.spec.sources import VAULT_WAY_OUT
from boxwright.spec.suggestions import did_you_mean, nearest
from boxwright.spec.values import Opaque, is_opaque

__all__ = ["Problem", "Removed", "check", "judged_box", "removed_variables"]

_REMOVED = Path(__file__).with_name("removed.yml")
#: How alike a name without one of our prefixes must be to one of ours to be taken for a slip of the pen.
_SLIP = 0.9


@dataclass(frozen=True)
class Removed:
    """A variable that is gone. since: the release; use: what replaces it, if anything; why: a sentence."""

    name: str
    since: str
    use: str = ""
    why: str = ""


@cache
def removed_variables(file: Path = _REMOVED) -> tuple[Removed, ...]:
    """The variables that earlier releases took and this one does not."""
    return tuple(Removed(**entry) for entry in yaml.safe_load(file.read_text(encoding="utf-8")))


def check(
    inventory: Inventory,
    hosts: Sequence[str] | None = None,
    *,
    schema: Mapping[str, Any] | None = None,
    removed: Iterable[Removed] | None = None,
) -> list[Problem]:
    """Every mistake that an inventory makes about some hosts, or about all.

    Mistakes in the form of files are told but for those that only other hosts read; values that are templates
    or encrypted are passed over, for they are known only later. A mistake that several hosts have from one
    line is told once. schema and removed: those of this installation unless given.
    """
    known = schemas.installed() if schema is None else schema
    gone = {entry.name: entry for entry in (removed_variables() if removed is None else removed)}
    chosen = inventory.hosts if hosts is None else hosts
    problems = inventory.problems_about(chosen)
    for host in chosen:
        try:
            variables = inventory.raw(host)
        except SpecErrors as error:
            problems += error.problems
            continue
        problems += _Host(inventory, host, variables).problems(known, gone)
    return sorted(_told_once(problems), key=lambda problem: (problem.file or "", problem.line or 0))


def judged_box(host: str, variables: Mapping[str, object]) -> Box:
    """The box of variables whose templates are filled in and whose vaults are open.

    `check` passed over such values; here they are held against all that it holds plain ones against. Raises
    SpecErrors with every mistake found.
    """
    problems = list(_Host(_Nowhere(), host, variables).judged(schemas.installed()))
    if problems:
        raise SpecErrors(problems)
    return box_from_variables(host, variables)


class _Nowhere:
    """Stands for the inventory of variables whose places are not known."""

    def location(self, host: str, path: str) -> Location | None:
        return None

    def locked(self) -> str | None:
        return None

    def problem(self, host: str, path: str, value: str, message: str, allowed: str = "") -> Problem:
        return Problem(None, None, host, path, value, message, allowed)


def _told_once(problems: Iterable[Problem]) -> list[Problem]:
    """Problems without repetition: one line of a group's file is one mistake, however many hosts have it."""
    hosts: dict[Problem, dict[str, None]] = {}
    for problem in problems:
        shared = problem if problem.file is None else replace(problem, host=None)
        hosts.setdefault(shared, {}).update({problem.host: None} if problem.host else {})
    return [
        replace(problem, host=_some(list(names)) if names else problem.host)
        for problem, names in hosts.items()
    ]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} and {len(names) - 1} more"


class _Host:
    """One host's variables under judgement."""

    def __init__(self, inventory: Inventory | _Nowhere, host: str, variables: Mapping[str, object]) -> None:
        self._inventory = inventory
        self._host = host
        self._variables = variables

    def problems(self, schema: Mapping[str, Any], removed: Mapping[str, Removed]) -> list[Problem]:
        found = [
            *self._names(schema["properties"], removed),
            *self._encrypted(),
            *self.judged(schema),
        ]
        if not found and not is_opaque(self._own()):
            try:
                box_from_variables(self._host, self._variables)
            except SpecErrors as error:
                found = [self._problem(p.variable, None, p.message, p.allowed) for p in error.problems]
        return found

    def judged(self, schema: Mapping[str, Any]) -> Iterator[Problem]:
        """What is wrong with the values, whatever their names and places."""
        yield from self._values(schema)
        yield from self._twice("name")
        yield from self._ports(schema["properties"])
        yield from self._directories(schema["properties"])
        yield from self._catalog()
        yield from self._calibration()

    def _own(self) -> dict[str, object]:
        return {name: value for name, value in self._variables.items() if name.startswith(OWN_PREFIXES)}

    def _problem(self, path: str, value: object, message: str, allowed: str = "") -> Problem:
        place = self._inventory.location(self._host, path)
        text = "" if value is None else MASK if place is not None and place.encrypted else shown(value, path)
        if text == MASK:
            # How to write it must not tell it: a secret of digits alone is meant in quotes.
            allowed = allowed.replace(str(value), MASK)
        return self._inventory.problem(self._host, path, text, message, allowed)

    def _names(self, known: Mapping[str, Any], removed: Mapping[str, Removed]) -> Iterator[Problem]:
        # The value of a name that nobody knows is not told: it may be a secret whose name was misspelt.
        for name in self._variables:
            if name in removed:
                entry = removed[name]
                told = f"was removed in {entry.since}" + (f": {entry.why}" if entry.why else "")
                yield self._problem(name, None, told, entry.use or "nothing in its place: take it out")
            elif name in known or name.startswith("ansible_"):
                continue
            elif name.startswith(OWN_PREFIXES):
                guess = nearest(name, known)
                yield self._problem(
                    name, None, "is not a variable of Boxwright", f"did you mean {guess}?" if guess else ""
                )
            elif guess := nearest(name, known, likeness=_SLIP):
                yield self._problem(name, None, "has no effect under this name", f"did you mean {guess}?")

    def _values(self, schema: Mapping[str, Any]) -> Iterator[Problem]:
        for name in schema.get("required", ()):
            if name not in self._variables:
                yield self._problem(name, None, "is required and missing")
        for name, part in schema["properties"].items():
            if name in self._variables:
                for mistake in mistakes(self._variables[name], part):
                    path = name + path_text(mistake.steps)
                    yield self._problem(path, mistake.value, mistake.message, mistake.allowed)

    def _encrypted(self) -> Iterator[Problem]:
        """Encrypted values that nobody can open: the run would stop at them."""
        why = self._inventory.locked() or "no known password opens it"
        for path, value in _walk(self._own()):
            if isinstance(value, Opaque) and value.kind == "locked":
                yield self._problem(path, None, f"is encrypted, and {why}", VAULT_WAY_OUT)

    def _deployments(self) -> list[Mapping[str, object]]:
        declared = self._variables.get("box_deployments")
        return (
            [entry if isinstance(entry, Mapping) else {} for entry in declared]
            if isinstance(declared, list)
            else []
        )

    def _twice(self, key: str) -> Iterator[Problem]:
        """Deployments that share a name."""
        first: dict[str, int] = {}
        for index, deployment in enumerate(self._deployments()):
            value = deployment.get(key)
            if not isinstance(value, str):
                continue
            before = first.setdefault(value, index)
            if before != index:
                yield self._shared(index, before, key, value)

    def _ports(self, known: Mapping[str, Any]) -> Iterator[Problem]:
        """Deployments that share a port on one address (the default ones as well), or take that of SSH."""
        default, everywhere = _default_of(known, "port"), ("0.0.0.0", "::")
        taken: dict[int, list[tuple[int, object]]] = {}
        for index, deployment in enumerate(self._deployments()):
            port = deployment.get("port", default if deployment else None)
            bind = deployment.get("bind", _default_of(known, "bind"))
            if not isinstance(port, int) or isinstance(port, bool):
                continue
            if port == self._variables.get("ansible_port"):
                path = f"box_deployments[{index}].port"
                yield self._problem(path, port, "is the port of the host's SSH", "another port")
            for before, other in taken.setdefault(port, []):
                if bind == other or bind in everywhere or other in everywhere:
                    yield self._shared(index, before, "port", port)
                    break
            else:
                taken[port].append((index, bind))

    def _shared(self, index: int, before: int, key: str, value: object) -> Problem:
        return self._problem(
            f"box_deployments[{index}].{key}",
            value,
            f"is also the {key} of box_deployments[{before}]",
            f"a {key} of its own for each deployment of a host",
        )

    def _directories(self, known: Mapping[str, Any]) -> Iterator[Problem]:
        """What is downloaded and what is configured lie apart: an uninstall takes either away whole."""
        root, config = (
            str(self._variables.get(name) or known.get(name, {}).get("default") or name).rstrip("/") + "/"
            for name in ("box_root_dir", "box_config_dir")
        )
        if root.startswith(config) or config.startswith(root):
            name = "box_root_dir" if "box_root_dir" in self._variables else "box_config_dir"
            yield self._problem(
                name,
                self._variables.get(name),
                f"must lie apart from {(config if name == 'box_root_dir' else root).rstrip('/')}",
                "two directories of which none lies in the other",
            )

    def _catalog(self) -> Iterator[Problem]:
        """Names of models and cards that the catalog does not know."""
        models, cards = _catalog_names()
        for index, deployment in enumerate(self._deployments()):
            model, path = deployment.get("model"), f"box_deployments[{index}].model"
            if isinstance(model, str) and model not in models:
                repo = model if model.count("/") == 1 else "organization/name"
                other = f"any other one: {{repo: {repo}}} or {{path: /directory}}"
                yield self._problem(
                    path,
                    model,
                    "is no model of the catalog",
                    other if "/" in model else f"{did_you_mean(model, models)}; {other}",
                )
        gpus = self._variables.get("box_gpus")
        single = isinstance(gpus, Mapping)
        for index, entry in enumerate([gpus] if single else gpus if isinstance(gpus, list) else []):
            card = entry.get("model") if isinstance(entry, Mapping) else None
            if isinstance(card, str) and card not in cards:
                path = "box_gpus.model" if single else f"box_gpus[{index}].model"
                yield self._problem(path, card, "is no card of the catalog", did_you_mean(card, cards))

    def _calibration(self) -> Iterator[Problem]:
        """Calibration texts that are not there, or are none."""
        named = {"model_quantize_calibration": self._variables.get("model_quantize_calibration")}
        for index, deployment in enumerate(self._deployments()):
            quantize = deployment.get("quantize")
            if isinstance(quantize, Mapping):
                named[f"box_deployments[{index}].quantize.calibration"] = quantize.get("calibration")
        for path, value in named.items():
            if not isinstance(value, str) or not value:
                continue
            try:
                calibration.read(value)
            except calibration.CalibrationError as error:
                yield self._problem(path, value, str(error), calibration.ALLOWED)


def _walk(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _walk(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _walk(item, f"{path}[{index}]")
    else:
        yield path, value


def _default_of(known: Mapping[str, Any], key: str) -> object:
    deployment = known.get("box_deployments", {}).get("items", {}).get("properties", {})
    return deployment.get(key, {}).get("default")


@cache
def _catalog_names() -> tuple[frozenset[str], frozenset[str]]:
    """Names of the catalog's models and cards."""
    entries, _ = catalog_models.load()
    return frozenset(entry.id for entry in entries), frozenset(kind.id for kind in card_kinds.load())
