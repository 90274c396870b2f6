"""What the weights' actions read of a run's variables: who wants which revision, who offers it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boxwright.ansible.declared import plain
from boxwright.planner import spreading

KEY, OFFER, OFFERS = "_model_weights_key", "__model_weights_share", "__model_weights_offers"


def plans(variables: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The plan of each box that is still in the run, in its order."""
    known = variables.get("hostvars") or {}
    found = {}
    for name in variables.get("ansible_play_hosts") or ():
        plan = known[name].get("box_plan")
        if plan:
            found[str(name)] = plan
    return found


def offers(variables: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Box -> its offer (addresses, port, holdings): those of the run, and others that were asked."""
    known = variables.get("hostvars") or {}
    found: dict[str, dict[str, Any]] = {}
    for name in variables.get("ansible_play_hosts") or ():
        found[str(name)] = plain(known[name].get(OFFER) or {})
    for result in (plain(variables.get(OFFERS)) or {}).get("results") or ():
        found.setdefault(str(result.get("item")), result)
    return {name: offer for name, offer in found.items() if offer.get("port")}


def peers(variables: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The boxes that this one takes from: name, addresses, port, and the revisions to take (`places`)."""
    me, offered = str(variables["inventory_hostname"]), offers(variables)
    made = plans(variables)
    partners = {me: [str(name) for name in variables.get("model_weights_peers") or ()]}
    taken = spreading.givers(
        me,
        {name: spreading.places(plan) if spreading.lacking(plan) else [] for name, plan in made.items()},
        {name: offer["holdings"] for name, offer in offered.items()},
        partners,
    )
    found = []
    for name, offer in offered.items():
        mine = [place for place, givers in taken.items() if name in givers]
        if mine:
            found.append(
                {"name": name, "addresses": offer["addresses"], "port": offer["port"], "places": mine}
            )
    return found
