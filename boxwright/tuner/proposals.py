"""What there is to try on a box: for each kind of option its values, each first judged by the plan.

What would not fit, not start, or go beyond what a card takes or what is declared as its limit is not tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from boxwright import planner
from boxwright.catalog import Catalog
from boxwright.facts.model import HostFacts
from boxwright.planner import HostPlan
from boxwright.planner.case import Case
from boxwright.spec.flat import flat, varied
from boxwright.spec.problem import SpecErrors
from boxwright.spec.validate import judged_box
from boxwright.spec.yaml_text import flow

#: Kinds of options, in the order in which they are tried, with the option that each is.
KINDS = {
    "drafts": "speculative",
    "kv": "kv_cache",
    "backend": "extra_args.attention-backend",
    "sequences": "concurrency",
    "batched_tokens": "max_batched_tokens",
    "clock": "gpu_tuning_max_clock_mhz",
    "power": "gpu_tuning_power_limit_w",
}
#: Kinds that are limits of the cards.
OF_CARDS = ("clock", "power")
DEFAULT_SEQUENCES = 8


@dataclass(frozen=True)
class Value:
    """A value to try. refused: why it is not."""

    options: Mapping[str, Any]
    label: str
    refused: str = ""


@dataclass(frozen=True)
class Sweep:
    """One kind of option. declared: its value now, in words. why: there is nothing to try, and why."""

    kind: str
    option: str
    declared: str
    values: tuple[Value, ...]
    why: str = ""

    @property
    def tried(self) -> tuple[Value, ...]:
        """The values that the plan lets be tried."""
        return tuple(one for one in self.values if not one.refused)


@dataclass(frozen=True)
class Subject:
    """A deployment of a box with all that a plan of it needs. variables: the host's, as declared."""

    host: str
    deployment: str
    variables: Mapping[str, Any]
    facts: HostFacts
    catalog: Catalog
    revisions: Mapping[str, str]
    drafter_revisions: Mapping[str, str]

    @property
    def declared(self) -> Mapping[str, Any]:
        """The deployment as it is declared."""
        found: Sequence[Mapping[str, Any]] = self.variables["box_deployments"]
        return next(one for one in found if one["name"] == self.deployment)

    def plan(self, options: Mapping[str, Any]) -> HostPlan:
        """The box with some options changed. Raises SpecErrors for values that no inventory may have."""
        box = judged_box(self.host, varied(self.variables, self.deployment, options))
        return planner.plan(box, self.facts, self.catalog, self.revisions, self.drafter_revisions)

    def case(self, made: HostPlan) -> Case:
        """This deployment's part of a plan."""
        return next(case for case in made.cases if case.deployment.name == self.deployment)

    def refusal(self, options: Mapping[str, Any]) -> str:
        """Why the plan refuses these options; empty where it does not."""
        try:
            made = self.plan(options)
        except SpecErrors as error:
            return "; ".join(f"{one.variable} {one.message}".strip() for one in error.problems)
        return "; ".join(f"{gate.id}: {gate.message}" for gate in made.gates)


@cache
def data() -> Mapping[str, Any]:
    """The values of the field's sweeps (data/sweeps.yml)."""
    text = (files("boxwright.tuner") / "data" / "sweeps.yml").read_text(encoding="utf-8")
    found: Mapping[str, Any] = yaml.safe_load(text)
    return found


def sweeps(subject: Subject, kinds: Sequence[str]) -> tuple[Sweep, ...]:
    """A sweep for each of the kinds, in their own order, every value judged."""
    case = subject.case(subject.plan({}))
    found = []
    for kind in KINDS:
        if kind not in kinds:
            continue
        sweep = _MAKERS[kind](subject, case)
        values = tuple(replace(one, refused=subject.refusal(one.options)) for one in sweep.values)
        found.append(replace(sweep, values=values))
    return tuple(found)


def label(option: str, value: Any) -> str:
    """An option with its value as an inventory says it; one that is left out is said to be."""
    return f"{option}: {flow(value)}" if value is not None else f"{option} left out"


def named(options: Mapping[str, Any]) -> str:
    """Several options in words; none: the declaration itself."""
    return ", ".join(label(*one) for one in options.items()) or "as declared"


def _sweep(kind: str, now: Any, values: Sequence[Any], why: str = "") -> Sweep:
    """A sweep over values of one option, without the one that it has; null leaves it out."""
    option = KINDS[kind]
    found = [Value({option: one}, label(option, one)) for one in once(values) if one != now]
    return Sweep(kind, option, label(option, now), tuple(found), why)


def once(values: Sequence[Any]) -> list[Any]:
    """Values each once, also those that cannot be hashed."""
    found: list[Any] = []
    for one in values:
        if one not in found:
            found.append(one)
    return found


def _drafts(subject: Subject, case: Case) -> Sweep:
    entry, now = case.model.entry, flat(subject.declared).get("speculative")
    values: list[Any] = []
    for method, tokens in ((one["method"], one["tokens"]) for one in data()["drafts"]):
        if method == "none":
            values.append(None)
            continue
        if method == "mtp" and (entry is None or entry.mtp is False):
            continue
        if method == "dflash2":
            drafter = subject.catalog.drafter(case.deployment.model.name, method)
            if drafter is None:
                continue
            tokens = tokens or drafter.tokens
        values.append({"method": method, "tokens": tokens})
    return _sweep("drafts", now, values)


def _kv(subject: Subject, case: Case) -> Sweep:
    return _sweep("kv", case.deployment.kv_cache, data()["kv"])


def _backend(subject: Subject, case: Case) -> Sweep:
    now = flat(subject.declared).get(KINDS["backend"])
    if case.deployment.engine != "vllm":
        return _sweep("backend", now, (), f"{case.deployment.engine} names its backends otherwise")
    return _sweep("backend", now, data()["backend"])


def _sequences(subject: Subject, case: Case) -> Sweep:
    now, most = case.deployment.concurrency, data()["most_sequences"]
    values = [max(1, round(now * factor)) for factor in data()["sequences"]]
    return _sweep("sequences", now, [one for one in values if one <= max(most, now)])


def _batched_tokens(subject: Subject, case: Case) -> Sweep:
    sweep = _sweep("batched_tokens", case.settings.batched_tokens, data()["batched_tokens"])
    return (
        sweep
        if case.deployment.max_batched_tokens
        else replace(sweep, declared="max_batched_tokens left out")
    )


def _clock(subject: Subject, case: Case) -> Sweep:
    tuning, step = case.host.box.tuning, data()["clock_step_mhz"]
    own = [
        card.card.clocks.max_graphics or (card.kind.clock_graphics_mhz if card.kind else None)
        for card in case.cards
    ]
    top = _least([tuning.max_clock_mhz, *own]) if all(own) else None
    why = _no_limits(case, "max_clock_mhz") or ("" if top else "the cards do not tell their clocks")
    values = [] if why else _shares("clock", top or 0, step, tuning.min_clock_mhz)
    return _sweep("clock", tuning.max_clock_mhz, values, why)


def _power(subject: Subject, case: Case) -> Sweep:
    tuning, step = case.host.box.tuning, data()["power_step_w"]
    lows = [_finite(card.card.power.min, card.kind.power_min_w if card.kind else None) for card in case.cards]
    usual = [
        _finite(card.card.power.default, card.kind.power_default_w if card.kind else None)
        for card in case.cards
    ]
    why = _no_limits(case, "power_limit_w")
    if not why and (not lows or None in lows or None in usual):
        why = "the cards do not tell which limits they take"
    values: list[int] = []
    if not why:
        low = math.ceil(max(one for one in lows if one is not None))
        top = _least([tuning.power_limit_w, *usual]) or 0
        values = _shares("power", top, step, low)
        if not values:
            why = f"the cards take no limit below {low} W"
    return _sweep("power", tuning.power_limit_w, values, why)


def _shares(kind: str, top: float, step: int, low: int) -> list[int]:
    """The shares of the limit that holds now, in whole steps, the least first; none is below the lowest."""
    found = {max(low, math.floor(top * share / step) * step) for share in data()[kind]}
    return sorted(one for one in found if 0 < one < top)


def _least(values: Sequence[float | None]) -> float | None:
    return min((one for one in values if one is not None), default=None)


def _finite(*said: float | None) -> float | None:
    return next((one for one in said if one is not None and math.isfinite(one)), None)


def _no_limits(case: Case, name: str) -> str:
    """Why the limit of the box says nothing about these cards."""
    if not case.cards:
        return "the deployment has no card"
    if any(name in own for own in case.host.box.tuning.cards.values()):
        return f"gpu_tuning_cards declares {name} of single cards"
    return ""


_MAKERS: Mapping[str, Callable[[Subject, Case], Sweep]] = {
    "drafts": _drafts,
    "kv": _kv,
    "backend": _backend,
    "sequences": _sequences,
    "batched_tokens": _batched_tokens,
    "clock": _clock,
    "power": _power,
}


def refused(found: Sequence[Sweep]) -> Iterator[tuple[str, str]]:
    """What is not tried, and why."""
    for sweep in found:
        if sweep.why:
            yield sweep.kind, sweep.why
        for value in sweep.values:
            if value.refused:
                yield value.label, value.refused
