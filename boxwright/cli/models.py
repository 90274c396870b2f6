"""What a box's store holds: listed, read through, and freed of what nothing uses."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from boxwright.cli import lab
from boxwright.cli.ansible_run import play
from boxwright.cli.console import say, say_aside, show_json, table, wrapped
from boxwright.cli.recording import recorded
from boxwright.cli.ssh_trouble import answers, by_host, tell_missed
from boxwright.cli.targets import targets
from boxwright.cli.turns import addresses, turn
from boxwright.cli.validating import refuse_problems
from boxwright.errors import EXIT_BAD_INPUT, EXIT_FAILED, UserError
from boxwright.spec.inventory import Inventory


def show(
    hosts: Sequence[str],
    inventories: Sequence[str],
    *,
    every: bool = False,
    deep: bool = False,
    prune: bool = False,
    yes: bool = False,
    as_json: bool = False,
) -> None:
    """List each host's store; with `prune` free what nothing uses, after a yes.

    Exit status 1 where a file is not what it should be.
    """
    inventory, names, paths = targets(hosts, inventories, every=every)
    refuse_problems(inventory, names)
    if prune and not yes and not _asks():
        raise UserError(
            "nobody can be asked here whether to free what nothing uses",
            status=EXIT_BAD_INPUT,
            ways_out=("--yes",),
        )
    lab.ensure_simulated(inventory, names, as_json=as_json)
    found, missed = _read(inventory, names, paths, deep=deep, quiet=as_json or not deep)
    if prune:
        useless = {name: idle(one) for name, one in found.items()}
        if any(useless.values()) and (yes or _agreed(useless)):
            given = {
                name: [one["directory"] for one in revisions]
                for name, revisions in useless.items()
                if revisions
            }
            with turn(addresses(list(given), inventory.variables), say_aside):
                freed, lost = _read(inventory, list(given), paths, prune=given)
            found, missed = {**found, **freed}, {**missed, **lost}
    if as_json:
        show_json(by_host({name: _plain(one) for name, one in found.items()}, missed))
    else:
        for name, one in found.items():
            draw(name, one, deep=deep, alone=len(names) == 1)
        tell_missed(missed, alone=len(names) == 1)
    if missed or any(one["flaws"] for listing in found.values() for one in listing["revisions"]):
        raise SystemExit(EXIT_FAILED)


def _read(
    inventory: Inventory,
    names: Sequence[str],
    paths: Sequence[Path],
    *,
    deep: bool = False,
    prune: Mapping[str, Sequence[str]] | None = None,
    quiet: bool = True,
) -> tuple[dict[str, Mapping[str, Any]], dict[str, UserError]]:
    """What the module found on each host, and why another does not tell."""
    variables = {
        "models_deep": deep,
        "models_prune": prune or {},
        **(recorded("models", paths, ["--prune"]) if prune else {}),
    }
    report = play("models.yml", names, paths, quiet=quiet, variables=variables)
    return answers(report.hosts, names, "model_listing", inventory)


def _plain(found: Mapping[str, Any]) -> dict[str, Any]:
    return {key: found[key] for key in ("revisions", "freed", "kept", "room")}


def idle(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The revisions that no release serves and no inventory declares."""
    return [one for one in found["revisions"] if not one["used"] and not one["declared"]]


def _asks() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _agreed(useless: Mapping[str, Sequence[Mapping[str, Any]]]) -> bool:
    """Ask, on a terminal, whether these are to go."""
    for name, revisions in useless.items():
        for one in revisions:
            say_aside(f"  {name}  {_title(one)}  {size(one['size'])}  {one['directory']}")
    total = sum(one["size"] for revisions in useless.values() for one in revisions)
    print(f"remove these, {size(total)} in all? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def draw(name: str, found: Mapping[str, Any], *, deep: bool = False, alone: bool = True) -> None:
    """Print one store as a table, what is wrong in it, and what can be freed."""
    revisions = found["revisions"]
    total = sum(one["size"] for one in revisions)
    if not alone:
        say(name)
    if revisions:
        table(
            ["model", "revision", "size", "verified", "used by"],
            [
                [_title(one), one["revision"][:10], size(one["size"]), verified(one, deep=deep), usage(one)]
                for one in revisions
            ],
            right=(2,),
        )
    for one in revisions:
        for flaw in one["flaws"]:
            say(wrapped(f"{_title(one)}: {flaw['path']} is wrong: {flaw['how']}", 2, 4))
    if any(one["flaws"] for one in revisions):
        say(f"  have those files fetched again:  ./invoke provision --host {name}")
    for directory in found["freed"]:
        say(f"freed {directory}")
    for directory in found["kept"]:
        say(f"kept {directory}: a run or a release uses it")
    say(f"{len(revisions)} in the store, {size(total)}; {size(found['room'])} free")
    useless = idle(found)
    if useless:
        freeable = size(sum(one["size"] for one in useless))
        say(f"nothing uses {len(useless)} of them ({freeable}):  ./invoke models --host {name} --prune")


def _title(one: Mapping[str, Any]) -> str:
    return f"{one['repo']} ({one['made']})" if one["made"] else str(one["repo"])


def verified(one: Mapping[str, Any], *, deep: bool) -> str:
    """How well the files of a revision are known to be right, in a few words."""
    if one["state"] == "unfinished":
        return "not finished" if one["made"] else "fetched in part"
    if one["state"] == "unknown":
        return "never"
    if one["flaws"]:
        return f"{len(one['flaws'])} of {one['files']} files wrong"
    words = f"{one['by_sha256']}/{one['files']} sha256"
    return f"{words}, read" if deep else words


def usage(one: Mapping[str, Any]) -> str:
    """What a revision is kept for."""
    if one["used"]:
        more = len(one["used"]) - 1
        return str(one["used"][0]) + (f" and {more} more" if more else "")
    return "declared" if one["declared"] else "nothing"


def size(count: float) -> str:
    """Bytes in the decimal units that hubs and disks use."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count / 1e3:.0f} kB"
