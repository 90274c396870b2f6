"""Whence each box of a run gets a revision: from boxes that have it, or from the one that fetches it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any


def places(plan: Mapping[str, Any]) -> list[str]:
    """The revisions of the hub that a box's plan wants in its store, as `org--name/commit`."""
    found: dict[str, None] = {}
    for deployment in plan.get("deployments") or ():
        made = deployment.get("quantize") or {}
        for weights in (deployment.get("weights"), made.get("source"), deployment.get("drafter")):
            if weights and weights.get("kind") == "hub" and weights.get("revision"):
                found[f"{str(weights['repo']).replace('/', '--')}/{weights['revision']}"] = None
    return list(found)


def lacking(plan: Mapping[str, Any]) -> bool:
    """Whether a box's plan fetches weights."""
    changes = plan.get("changes")
    return changes is None or any(change["role"] == "model_weights" for change in changes)


def givers(
    me: str,
    wanting: Mapping[str, Sequence[str]],
    holding: Mapping[str, Collection[str]],
    partners: Mapping[str, Collection[str]],
) -> dict[str, list[str]]:
    """From which boxes this one gets each revision that it wants; the hub is the way for the others.

    wanting: revisions by box of the run, in the run's order; holding: whole revisions by box; partners: the
    boxes that a box may take from. Where nobody has a revision, the first box that wants it fetches it from
    the hub, and all others take from each other what is there already.
    """
    found: dict[str, list[str]] = {}
    for place in wanting.get(me, ()):
        allowed = [box for box in _ordered(wanting, holding) if box != me and box in partners.get(me, ())]
        having = [box for box in allowed if place in holding.get(box, ())]
        fetching = [box for box in allowed if place in wanting.get(box, ()) and box not in having]
        first = next((box for box in wanting if place in wanting[box]), me)
        if having or first in fetching:
            found[place] = having + fetching
    return found


def _ordered(*boxes: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(box for group in boxes for box in group))
