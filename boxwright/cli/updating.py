"""Moving the lock of a box to what hub and registries offer now, and saying what that changes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from boxwright.cli import lab
from boxwright.cli.ansible_run import play
from boxwright.cli.console import say, show_json, table, wrapped
from boxwright.cli.models import size
from boxwright.cli.recording import recorded
from boxwright.cli.ssh_trouble import answers, by_host, tell_missed
from boxwright.cli.targets import targets
from boxwright.cli.validating import refuse_problems
from boxwright.errors import EXIT_BAD_INPUT, EXIT_FAILED, UserError
from boxwright.texts import printable

#: A deployment's name, the catalog's, or the hub's.
NAME = r"[A-Za-z0-9_][\w.-]{0,95}(?:/[\w.-]{1,96})?"


def update(
    hosts: Sequence[str],
    inventories: Sequence[str],
    *,
    every: bool = False,
    model: str = "",
    check: bool = False,
    as_json: bool = False,
) -> None:
    """Move each host's models and images in the lock; with `check` only say where they would go.

    model: only this one, and no image.
    """
    if model and not re.fullmatch(NAME, model):
        raise UserError(
            f"--model {printable(model)}: no model has such a name",
            status=EXIT_BAD_INPUT,
            ways_out=("a deployment's name, the catalog's, or the hub's org/name",),
        )
    inventory, names, paths = targets(hosts, inventories, every=every)
    refuse_problems(inventory, names)
    lab.ensure_simulated(inventory, names, as_json=as_json)
    report = play(
        "update.yml",
        names,
        paths,
        check=check,
        quiet=True,
        variables={"update_model": model} | recorded("update", paths),
    )
    told, missed = answers(report.hosts, names, "lock_update", inventory)
    found = {name: [dict(move) for move in one["moves"]] for name, one in told.items()}
    alone = len(names) == 1 and not every
    if as_json:
        if alone:
            for error in missed.values():
                raise error
        show_json({**found, **by_host({}, missed)})
    else:
        for name, moves in found.items():
            draw(name, moves, check=check)
        tell_missed(missed, alone=alone, what="its lock stays as it is")
    if missed:
        raise SystemExit(EXIT_FAILED)


def draw(name: str, moves: Sequence[Mapping[str, Any]], *, check: bool) -> None:
    """Print where a host's models stand in the lock and where they go."""
    if not moves:
        say(f"{name}: no model of a hub and no image with a tag is declared")
        return
    say(name)
    table(
        ["  deployment", "what", "name", "locked", "now"],
        [
            [
                f"  {move['deployment']}",
                move["what"],
                move["name"],
                short(move["before"]) if move["before"] else "not yet",
                "the same" if move["before"] == move["after"] else short(move["after"]),
            ]
            for move in moves
        ],
    )
    moved = [move for move in moves if move["before"] != move["after"]]
    for move in moved:
        if move["what"] == "image":
            if move["before"]:
                say(wrapped(f"{move['name']}: {image_words(move)}", 2, 4))
        elif move["changed"] is not None and move["before"]:
            files = ", ".join(move["changed"][:4]) + (", …" if len(move["changed"]) > 4 else "")
            count = len(move["changed"])
            what = (
                f"{count} of its files differ ({size(move['bytes'])}): {files}"
                if count
                else "no file differs"
            )
            say(wrapped(f"{move['name']}: {what}", 2, 4))
    if not moved:
        say("  the lock is at what is offered now")
    elif check:
        say("  nothing was written; without --check the lock moves there")
    else:
        say(f"  the lock has moved; what it says comes with  ./invoke provision --host {name}")


def short(resolved: str) -> str:
    """The beginning of a commit or of a digest."""
    return resolved.removeprefix("sha256:")[:10]


def image_words(move: Mapping[str, Any]) -> str:
    """What another image under the same tag means."""
    told = f"{size(move['bytes'])} to fetch" if move["bytes"] else "of unknown size"
    if move["changed"] is None:
        return told
    return f"{told}; {', '.join(move['changed']) or 'the same CUDA'}"
