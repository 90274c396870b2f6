"""The rules: each looks at one fact, refuses or advises, and tells its story to `invoke explain`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from boxwright.planner.case import Case, Host
from boxwright.planner.finding import Finding
from boxwright.planner.rules import (  # noqa: F401  # importing them registers their rules
    cards,
    checkpoint,
    clock,
    disk,
    drafter,
    driver,
    hub,
    image,
    kernel_modules,
    kv_cache,
    memory,
    model,
    network,
    occupancy,
    options,
    parallelism,
    quantize,
    runtime,
    serving,
    sglang,
    speculation,
    trust,
    tuning,
)
from boxwright.planner.rules.registry import Story, apply, registered


def findings(host: Host, cases: Sequence[Case]) -> tuple[list[Finding], list[Finding]]:
    """What refuses the plan, and what to know of it."""
    return apply(host, cases)


def stories() -> Mapping[str, Story]:
    """Every rule by its id."""
    return {rule.id: Story(rule.kind, rule.text, rule.source) for rule in registered()}


__all__ = ["Story", "findings", "stories"]
