"""Checking inventories without a connection, and writing the schema that editors use."""

from __future__ import annotations

import json
from collections.abc import Sequence

from boxwright.cli.ansible_run import ROOT
from boxwright.cli.console import say, show_json
from boxwright.cli.targets import inventory_paths, some
from boxwright.errors import EXIT_BAD_INPUT, EXIT_FAILED, UserError
from boxwright.spec import schema
from boxwright.spec.inventory import Inventory, load, resolve_hosts
from boxwright.spec.judge import mistakes
from boxwright.spec.problem import SpecErrors
from boxwright.spec.validate import check as find_problems
from boxwright.texts import numbered, printable

SCHEMA = ROOT / "inventory" / "schema.json"


def validate(hosts: Sequence[str], inventories: Sequence[str], *, as_json: bool = False) -> None:
    """Say every mistake of the inventories (of some hosts or all) at once; exit status 2 if there is one."""
    inventory = load(inventory_paths(inventories, with_rigs=True))
    names = resolve_hosts(inventory, list(hosts)) if hosts else sorted(inventory.hosts)
    problems = find_problems(inventory, names)
    if as_json:
        show_json([problem.to_json() for problem in problems])
    else:
        for problem in problems:
            say(str(problem))
        if not problems:
            which = ", ".join(some(numbered(names)))
            say(f"{len(names)} host{'s' if len(names) != 1 else ''}: nothing wrong ({which})")
    if problems:
        raise SystemExit(EXIT_BAD_INPUT)


def refuse_problems(inventory: Inventory, hosts: Sequence[str]) -> None:
    """Raise SpecErrors with every mistake that the inventory makes about these hosts."""
    problems = find_problems(inventory, list(hosts))
    if problems:
        raise SpecErrors(problems)


def refuse_value(option: str, word: str, path: str) -> None:
    """Raises UserError for a value that no inventory could declare. path: `box_deployments[].image`."""
    described = schema.at(schema.installed()["properties"], path)
    assert described is not None, path
    for one in mistakes(word, described):
        raise UserError(
            f"{option} {printable(word)}: {one.message}",
            status=EXIT_BAD_INPUT,
            ways_out=(f"allowed is {one.allowed}",) if one.allowed else (),
        )


def write_schema(*, check: bool = False) -> None:
    """Write inventory/schema.json, or with `check` say whether it is what would be written."""
    text = json.dumps(schema.build(ROOT / "roles"), indent=2) + "\n"
    fresh = SCHEMA.exists() and SCHEMA.read_text(encoding="utf-8") == text
    if check:
        if not fresh:
            raise UserError(
                "inventory/schema.json is not what the roles say",
                status=EXIT_FAILED,
                ways_out=("./invoke schema",),
            )
        say("inventory/schema.json is fresh")
        return
    if not fresh:
        SCHEMA.write_text(text, encoding="utf-8")
    say("inventory/schema.json " + ("was fresh" if fresh else "written"))
