"""The verb init: look at a box over SSH, and declare it with what the plan finds best."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from boxwright import catalog, facts, planner
from boxwright.catalog import Catalog
from boxwright.catalog import choices as catalog_choices
from boxwright.cli import recommending, recorded
from boxwright.cli.ansible_run import ROOT, play
from boxwright.cli.console import say, show_json, wrapped
from boxwright.cli.paths import exists, is_file, named
from boxwright.cli.ssh_trouble import trouble
from boxwright.cli.staging import Place, Stage, place_for, refuse_name, staged, write
from boxwright.cli.targets import LAB, LOCAL
from boxwright.errors import EXIT_BAD_INPUT, EXIT_FAILED, EXIT_REFUSED, UserError
from boxwright.facts import HostFacts
from boxwright.planner.candidates import Wish
from boxwright.planner.cards import of_host
from boxwright.planner.choice import choice_json, whys
from boxwright.planner.declaration import (
    BRANCH,
    cards_of,
    cards_text,
    driver_branch,
    host_file,
    system_of,
    unknown_cards,
)
from boxwright.planner.recommend import Recommendation, recommend
from boxwright.spec.address import Address, parse_address
from boxwright.spec.box import Box
from boxwright.spec.host_file import HostFile
from boxwright.spec.inventory import load
from boxwright.spec.places import shown_path
from boxwright.spec.structure import host_name_problem
from boxwright.spec.validate import judged_box
from boxwright.spec.yaml_text import flow

#: Rules that speak of the box and not of a choice: there is nothing to choose, and the box is no box for us.
_NO_BOX = ("no-card", "system-not-supported")


def init(
    target: str,
    *,
    name: str = "",
    inventory: str = "",
    model: str = "",
    wanted: Wish,
    facts_file: str | None = None,
    ssh_config: str = "",
    only_show: bool = False,
    as_json: bool = False,
) -> None:
    """Declare the box at an address; nothing is written unless all of it holds.

    facts_file: facts recorded on the box, instead of asking it. ssh_config: a file instead of ~/.ssh/config,
    for this and every later visit. only_show: print what would be written.
    """
    recommending.refuse_model(model)
    address = replace(parse_address(target), config=_ssh_config(ssh_config))
    directory = _directory(inventory)
    name = name or _free_name(address, directory)
    refuse_name(name, load(_read_together(directory)))
    place = place_for(directory, name)
    with staged(place, name, address.variables()) as stage:
        stage.refuse_problems(name)
        asked = None if facts_file is None else recorded.facts_of_one(facts_file)
        known = asked or _probe(name, address, stage, wanted)
        _refuse_strangers(name, known)
        found, declared = _choose(name, known, stage, model, wanted)
        if declared is None:
            _refuse(name, found, as_json=as_json)
            return
        text = declared.text()
        stage.write_host(name, text)
        stage.refuse_problems(name)
        _refuse_gates(name, known, stage)
        if not only_show:
            write(stage, text)
    if as_json:
        show_json(_json(name, address, place, declared, found, written=not only_show))
    elif only_show:
        say(f"# {shown_path(place.list_file)}")
        say(stage.list_text)
        say(f"# {shown_path(place.host_file)}")
        say(text.rstrip("\n"))
    else:
        _draw(name, known, place, found, inventory)


def _ssh_config(given: str) -> str | None:
    """The file that was named, found from any directory; None where none was."""
    if not given:
        return None
    path = named(given).absolute()
    if not is_file(path):
        why = "there is no such file"
    elif re.search(r"\{[{%#]", str(path)):
        # What an inventory says is a template to Ansible.
        why = "its name holds what Ansible would fill in"
    else:
        return str(path)
    raise UserError(
        f"--ssh-config {shown_path(path)}: {why}",
        status=EXIT_BAD_INPUT,
        ways_out=("a file as ~/.ssh/config is: ssh -F FILE", "leave it out for ~/.ssh/config"),
    )


def _directory(given: str) -> Path:
    """The inventory to write to: the one that was named, which must exist, or the user's own."""
    if not given:
        return LOCAL
    path = named(given).absolute()
    if not given.strip() or not exists(path):
        raise UserError(
            f"there is no inventory at {given.strip() or '(nothing was named)'}",
            status=EXIT_BAD_INPUT,
            ways_out=("a directory that exists: --inventory DIRECTORY", "leave it out for inventory/local"),
        )
    return path


def _read_together(directory: Path) -> list[Path]:
    """The inventories that verbs will read the box with; an empty directory is none yet."""
    own = [directory] if directory.is_dir() and any(directory.iterdir()) else []
    return [LAB, *own] if directory == LOCAL or not own else own


def _free_name(address: Address, directory: Path) -> str:
    """A name for the box: its host's first label, or box1, box2, … where it has an IP address."""
    label = address.host.split(".")[0].lower().replace("_", "-")
    if not address.is_numeric and host_name_problem(label) is None:
        return label
    known = load(_read_together(directory)).hosts
    return next(f"box{number}" for number in range(1, len(known) + 2) if f"box{number}" not in known)


def _probe(name: str, address: Address, stage: Stage, wanted: Wish) -> HostFacts:
    """The facts of the box, asked as every later run will ask: by the staged inventory.

    Images are looked up with them, for the room that they take; models are not, for they are many.
    """
    if shutil.which("ssh") is None:
        raise UserError(
            "there is no ssh on this machine",
            ways_out=("install it: apt-get install openssh-client, dnf install openssh-clients",),
            status=EXIT_FAILED,
        )
    stage.write_host(name, f"box_deployments: {flow(_inquiries(wanted))}\n")
    report = play("facts.yml", [name], [stage.directory], quiet=True)
    host = report.hosts.get(name)
    if host is None or host.failure or not host.results.get("host_facts"):
        failure = host.failure if host else None
        raise trouble(name, failure, address)
    return facts.parse(host.results["host_facts"][0]["raw"], name)


def _inquiries(wanted: Wish) -> list[dict[str, object]]:
    """Deployments that only name the images to look up; their model is a directory that nobody has."""
    images = (wanted.image,) if wanted.image else catalog_choices.load().images
    return [
        {"name": f"inquiry{number}", "model": {"path": "/nowhere"}, "image": image, "port": 8000 + number}
        for number, image in enumerate(images)
    ]


def _refuse_strangers(name: str, known: HostFacts) -> None:
    """Raise UserError for cards of which nothing is known that a plan could go by."""
    cards = unknown_cards(known, catalog.load())
    if cards:
        words = ", ".join(f"{card.title} at {card.card.pci_bus}" for card in cards)
        raise UserError(
            f"the catalog does not know {words}, and no driver tells its memory",
            where=name,
            ways_out=(
                "install a driver by hand and run this again: it says what the card has",
                "write host_vars by hand, after the nearest file of inventory/rigs/host_vars",
            ),
        )


def _choose(
    name: str, known: HostFacts, stage: Stage, model: str, wanted: Wish
) -> tuple[Recommendation, HostFile | None]:
    """What fits on the box, and the file for the best of it; None where nothing does."""
    loaded = catalog.load()
    inherited = stage.inventory().variables(name)
    inherited.pop("box_deployments", None)
    found = recommend(_bare_box(name, known, loaded, inherited), known, loaded, wanted, model)
    if not found.choices:
        return found, None
    return found, host_file(name, known, loaded, found, inherited, _schema(stage.place))


def _bare_box(name: str, known: HostFacts, loaded: Catalog, inherited: Mapping[str, object]) -> Box:
    """The box without deployments: its cards, a driver, and what its groups give it."""
    needed = {BRANCH: driver_branch(known, loaded), **system_of(known)}
    return judged_box(name, {**needed, **inherited, **cards_of(known, loaded)})


def _schema(place: Place) -> str:
    """Where editors find the schema, seen from the file; nothing for an inventory outside the checkout."""
    home = ROOT / "inventory"
    if home not in place.host_file.parents:
        return ""
    return os.path.relpath(home / "schema.json", place.host_file.parent)


def _refuse(name: str, found: Recommendation, *, as_json: bool) -> None:
    """Say why there is nothing to write; a host that is no box for us is an error, not a plan."""
    for gate in found.nearest.gates if found.nearest else ():
        if gate.id in _NO_BOX:
            raise UserError(gate.message, where=name, ways_out=gate.fix)
    if as_json:
        show_json({**recommending.recommendation_json(name, found), "written": False})
    else:
        recommending.draw(name, found, everything=False, of_a_model=0)
        say()
        say("Nothing was written.")
    raise SystemExit(EXIT_REFUSED)


def _refuse_gates(name: str, known: HostFacts, stage: Stage) -> None:
    """Raise UserError when the plan of what would be written refuses it: the file must hold what it says."""
    box = judged_box(name, stage.inventory().variables(name))
    made = planner.plan(box, known, catalog.load())
    if made.gates:
        raise UserError(
            "the plan refuses what would be written; nothing was written",
            where=name,
            why="\n  ".join(f"{gate.id}: {gate.message}" for gate in made.gates),
            ways_out=tuple(way for gate in made.gates for way in gate.fix),
            status=EXIT_REFUSED,
        )


def _json(
    name: str, address: Address, place: Place, declared: HostFile, found: Recommendation, *, written: bool
) -> dict[str, Any]:
    return {
        "host": name,
        "address": address.variables(),
        "written": written,
        "files": {"hosts": str(place.list_file), "host_vars": str(place.host_file)},
        "declaration": declared.values(),
        "text": declared.text(),
        "choice": choice_json(found.choices[0], whys(found.choices[:2], found.wish)[0]),
    }


def _draw(name: str, known: HostFacts, place: Place, found: Recommendation, inventory: str) -> None:
    """Print what was found, what was written, what it serves, and what to run next."""
    best = found.choices[0]
    cards = cards_text(of_host(known, catalog.load()))
    driver = f"driver {known.driver.version}" if known.driver.version else "no driver yet"
    say(f"{name}: {cards}, {known.os.name or known.os.id}, {driver}")
    say(f"  written  {shown_path(place.host_file)}")
    say(f"           {shown_path(place.list_file)}: {name} is in it")
    told = f"{best.deployment.model} on {best.deployment.image}"
    if best.context:
        told += f", {best.context:,} tokens of context"
    if best.decode:
        told += f", {best.decode.low:.0f} to {best.decode.high:.0f} tokens/s for one sequence"
    say(wrapped(f"serves   {told}", 2, 9))
    for found_advice in best.plan.advice:
        say(wrapped(f"advice   {found_advice.id}: {found_advice.message}", 2, 9))
    more = f" --inventory {shlex.quote(inventory)}" if inventory else ""
    say(f"  next     ./invoke plan --host {name}{more}")
    say(f"           ./invoke provision --host {name}{more}")
