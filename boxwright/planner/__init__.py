"""The plan: does it fit, will it start, what will change.

Pure: declaration, facts and catalog in, plan out.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from boxwright.catalog import Catalog
from boxwright.facts.model import HostFacts
from boxwright.planner import case, fleet, rules
from boxwright.planner.changes import changes
from boxwright.planner.changes.drift import ROLES
from boxwright.planner.finding import Finding
from boxwright.planner.offline import offline_facts
from boxwright.planner.result import HostPlan
from boxwright.spec.box import Box

_NONE: Mapping[str, str] = MappingProxyType({})


def plan(
    box: Box,
    facts: HostFacts,
    catalog: Catalog,
    revisions: Mapping[str, str] = _NONE,
    drafter_revisions: Mapping[str, str] = _NONE,
) -> HostPlan:
    """The plan of a box.

    revisions, drafter_revisions: deployment -> commit that the lock file names, of its weights and of its
    draft model's.
    """
    host = case.host_of(box, facts, catalog, revisions, drafter_revisions)
    cases = case.cases(host)
    gates, advice = rules.findings(host, cases)
    serves, found = fleet.serves(box, facts), changes(host, cases)
    if not serves and found is not None:
        found = tuple(change for change in found if change.role not in ROLES)
    return HostPlan(box.host, facts, cases, tuple(gates), tuple(advice), found, serves=serves)


__all__ = ["Finding", "HostPlan", "offline_facts", "plan"]
