"""The boxes that are tuned, all at once, and how what came of each is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from boxwright.cli import benching, deployments, lab
from boxwright.cli.console import say, say_aside, show_json
from boxwright.cli.side_by_side import side_by_side
from boxwright.cli.ssh_trouble import by_host, tell_missed
from boxwright.cli.targets import targets
from boxwright.cli.trials import Trials
from boxwright.cli.tune_wish import Asked
from boxwright.cli.turns import addresses, turn
from boxwright.cli.validating import refuse_problems
from boxwright.errors import EXIT_FAILED
from boxwright.spec.inventory import Inventory

T = TypeVar("T")


@dataclass(frozen=True)
class Meant:
    """What is tuned: a deployment on each of these hosts. alone: one host was named, not every one."""

    inventory: Inventory
    deployments: Mapping[str, str]
    paths: list[Path]
    alone: bool

    @property
    def names(self) -> list[str]:
        """The hosts."""
        return list(self.deployments)


def meant(hosts: Sequence[str], inventories: Sequence[str], deployment: str | None, *, every: bool) -> Meant:
    """The hosts to tune; of every host those that serve text. Raises UserError where that is not clear."""
    inventory, names, paths = targets(hosts, inventories, every=every)
    refuse_problems(inventory, names)
    nothing = "so there is nothing to tune"
    names = deployments.hosts_that_deploy(inventory, names, deployment, nothing, every=every)
    names = deployments.writing(inventory, names, deployment, benching.MEASURES, every=every)
    found = {name: deployments.chosen(inventory, name, deployment) for name in names}
    return Meant(inventory, found, paths, alone=len(found) == 1 and not every)


def trials_on(boxes: Meant, host: str, wanted: Asked, options: Sequence[str] = ()) -> Trials:
    """The trials on one of the boxes; of several no run fills the terminal."""
    return Trials(
        host,
        boxes.deployments[host],
        boxes.inventory,
        boxes.paths,
        wanted.bench,
        minutes=wanted.minutes,
        quiet=wanted.as_json or not boxes.alone,
        say=say_aside if wanted.as_json else say,
        options=options,
    )


@dataclass(frozen=True)
class Shown(Generic[T]):
    """How what came of a box is shown: for a person, a program, as a picture. restored: it is as before."""

    draw: Callable[[str, T], None]
    to_json: Callable[[T], dict[str, Any]]
    picture: Callable[[str, T], str]
    restored: Callable[[T], bool]


def on_each(
    boxes: Meant, work: Callable[[str], T], shown: Shown[T], *, drawing: Path | None, as_json: bool
) -> None:
    """Measure on all boxes at once, then show what came of each; one that fails holds up no other.

    Exit status 1 where one failed, or is not as it was.
    """
    lab.ensure_simulated(boxes.inventory, boxes.names, as_json=as_json)
    with turn(addresses(boxes.names, boxes.inventory.variables), say_aside):
        found, missed = side_by_side(boxes.names, work)
    if boxes.alone:
        for error in missed.values():
            raise error
    if drawing:
        for host, one in found.items():
            benching.write_picture(drawing, shown.picture(host, one))
    if as_json:
        known = {host: shown.to_json(one) for host, one in found.items()}
        show_json(known | by_host({}, missed))
    else:
        for host, one in found.items():
            shown.draw(host, one)
            if drawing:
                say(f"  picture   {drawing}")
        tell_missed(missed, alone=False, what="could not be tuned")
    if missed or not all(shown.restored(one) for one in found.values()):
        raise SystemExit(EXIT_FAILED)
