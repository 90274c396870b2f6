"""What a host has otherwise than a role's last run left it, where no other change tells it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from boxwright.planner.case import Host
from boxwright.planner.changes.change import Change

#: Kinds of what a role keeps as it was; of the others it only has to know.
MENDED = ("file", "package", "unit")
#: The roles that change a host, in the order of a run.
ROLES = ("nvidia_driver", "container_runtime", "gpu_tuning", "model_weights", "model_quantize", "engine")


def changes(host: Host, found: Sequence[Change]) -> Iterator[Change]:
    """What each role's receipt knows otherwise; a role's packages only where nothing is found of it so far.

    The changes of a driver or an engine say better what became of the packages.
    """
    named = {change.role for change in found}
    for role in ROLES:
        receipt = host.facts.kept.receipts.get(role)
        for one in receipt.drift if receipt else ():
            if one.kind in MENDED and not (one.kind == "package" and role in named):
                yield Change(role, one.what, one.now, one.was)


def key_of(deployment: str) -> str:
    """The name under which a receipt knows the declared key of a deployment."""
    return f"box_deployments[{deployment}].api_key"
