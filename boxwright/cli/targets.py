"""Which inventories and hosts a verb means."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from boxwright.cli.ansible_run import ROOT
from boxwright.cli.paths import exists, named
from boxwright.errors import EXIT_BAD_INPUT, UserError
from boxwright.spec.inventory import Inventory, load, resolve_hosts
from boxwright.texts import numbered

#: The lab is always there; a user's own hosts are beside it, in a place that git ignores.
LAB, LOCAL, RIGS = ROOT / "inventory" / "lab", ROOT / "inventory" / "local", ROOT / "inventory" / "rigs"


def inventory_paths(given: Sequence[str], *, with_rigs: bool = False) -> list[Path]:
    """The inventories named with --inventory, or the lab's, the user's own and (to validate) the rigs'."""
    if not given:
        return [LAB, *([LOCAL] if LOCAL.exists() else []), *([RIGS] if with_rigs else [])]
    paths = [_resolved(named(name)) for name in given]
    for name, path in zip(given, paths, strict=True):
        if not name.strip() or not exists(path):
            raise UserError(
                f"there is no inventory at {name.strip() or '(nothing was named)'}",
                status=EXIT_BAD_INPUT,
                ways_out=("give a directory or a file that exists: --inventory PATH",),
            )
    return paths


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path


def targets(
    hosts: Sequence[str], inventories: Sequence[str], *, every: bool = False
) -> tuple[Inventory, list[str], list[Path]]:
    """Load the inventories and look the hosts up; every: all of them, whichever are named.

    Raises UserError for a host that is not there, and SpecErrors where a file that lists hosts is of no use:
    Ansible would run nothing.
    """
    if every:
        hosts = every_host(inventories)
    paths = inventory_paths(inventories)
    inventory = load(paths)
    inventory.refuse_unreadable()
    if not hosts:
        raise UserError(
            "which host? none was named",
            status=EXIT_BAD_INPUT,
            ways_out=("--host NAME, one of: " + ", ".join(some(numbered(inventory.hosts))),),
        )
    return inventory, resolve_hosts(inventory, list(hosts)), paths


def some(names: Sequence[str], most: int = 12) -> list[str]:
    """The first few names, and how many more there are."""
    return [*names[:most], *([f"… ({len(names) - most} more)"] if len(names) > most else [])]


def every_host(inventories: Sequence[str]) -> list[str]:
    """All hosts of the inventories that were named; without any, the user's own, or else the lab's."""
    paths = inventory_paths(inventories)
    if not inventories and LOCAL in paths:
        paths = [LOCAL]
    return sorted(load(paths).hosts)
