"""An inventory as it would be with one more box, tried out before anything of it is written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from boxwright.errors import EXIT_BAD_INPUT, UserError
from boxwright.spec.host_list import extended
from boxwright.spec.inventory import Inventory, load
from boxwright.spec.places import shown_path
from boxwright.spec.problem import Problem, SpecErrors
from boxwright.spec.structure import host_name_problem
from boxwright.spec.validate import check
from boxwright.texts import printable

_LISTS = ("hosts.yml", "hosts.yaml")
_ENDINGS = ("", ".yml", ".yaml", ".json")


@dataclass(frozen=True)
class Place:
    """Where a box is to be declared. list_file: hosts.yml; host_file: its own. Neither need exist."""

    directory: Path
    list_file: Path
    host_file: Path


def place_for(directory: Path, name: str) -> Place:
    """The files of a new box. Raises UserError where they, or something else of that name, cannot be."""
    if directory.exists() and not directory.is_dir():
        raise UserError(
            f"{shown_path(directory)} is a file; a box gets two files in a directory",
            status=EXIT_BAD_INPUT,
            ways_out=("--inventory DIRECTORY",),
        )
    listed = next((directory / one for one in _LISTS if (directory / one).exists()), directory / _LISTS[0])
    own = directory / "host_vars" / name
    for ending in _ENDINGS:
        there = own.with_name(name + ending)
        if there.exists() or there.is_symlink():
            raise UserError(
                f"{shown_path(there)} is there already, and it is not overwritten",
                status=EXIT_BAD_INPUT,
                ways_out=("another --name", "move it away first"),
            )
    above = next(one for one in (directory, *directory.parents) if one.exists())
    if not os.access(above, os.W_OK | os.X_OK):
        raise UserError(
            f"{shown_path(above)} cannot be written",
            status=EXIT_BAD_INPUT,
            ways_out=("--inventory DIRECTORY of your own",),
        )
    return Place(directory, listed, own.with_name(f"{name}.yml"))


def refuse_name(name: str, inventory: Inventory) -> None:
    """Raise UserError for a name that is no host's, or that a host or group of the inventory has."""
    reason = host_name_problem(name)
    if reason:
        raise UserError(
            f'"{printable(name)[:80]}" {reason[0]}',
            status=EXIT_BAD_INPUT,
            ways_out=(f"--name, like {reason[1]}",),
        )
    inventory.refuse_unreadable()
    kinds = (("host", inventory.hosts), ("group", inventory.group_names))
    for kind, names in kinds:
        if name in names:
            raise UserError(
                f'the inventory has a {kind} "{name}" already',
                status=EXIT_BAD_INPUT,
                ways_out=("another --name", f"./invoke plan --host {name}")
                if kind == "host"
                else ("another --name",),
            )


@dataclass(frozen=True)
class Stage:
    """A copy of the inventory's own list with the new box in it, and of the variables of its groups."""

    directory: Path
    place: Place
    list_text: str

    def write_host(self, name: str, text: str) -> None:
        """Put the box's file in its place on the stage."""
        folder = self.directory / "host_vars"
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.yml").write_text(text, encoding="utf-8")

    def inventory(self) -> Inventory:
        """The inventory as it stands on the stage."""
        return load([self.directory])

    def refuse_problems(self, name: str) -> None:
        """Raise SpecErrors with what is wrong about the box, said of the files it is meant for."""
        found = check(self.inventory(), [name])
        if found:
            raise SpecErrors([self._meant(problem) for problem in found])

    def _meant(self, problem: Problem) -> Problem:
        staged, meant = shown_path(self.directory), shown_path(self.place.directory)
        if problem.file is None or not problem.file.startswith(staged):
            return problem
        return Problem(
            meant + problem.file.removeprefix(staged),
            problem.line,
            problem.host,
            problem.variable,
            problem.value,
            problem.message,
            problem.allowed,
        )


@contextmanager
def staged(place: Place, name: str, variables: dict[str, object]) -> Iterator[Stage]:
    """The stage for a new box; it is gone afterwards. Raises UserError when its list cannot be extended."""
    text = _read(place.list_file)
    with tempfile.TemporaryDirectory(prefix="boxwright-") as scratch:
        directory = Path(scratch)
        stage = Stage(directory, place, extended(place.list_file, text, name, variables))
        (directory / place.list_file.name).write_text(stage.list_text, encoding="utf-8", newline="")
        # Ansible remembers where it found no file of a host's, and would not look there again.
        stage.write_host(name, "{}\n")
        groups = place.directory / "group_vars"
        if groups.is_dir():
            (directory / "group_vars").symlink_to(groups.resolve())
        yield stage


def _read(file: Path) -> str:
    if not file.exists():
        return ""
    try:
        with file.open(encoding="utf-8", newline="") as opened:
            return opened.read()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no UTF-8 text"
        raise UserError(f"{shown_path(file)} cannot be read: {reason}", status=EXIT_BAD_INPUT) from error


def write(stage: Stage, host_text: str) -> None:
    """Write the box's file, then the list; when the second fails, the first is taken back.

    Raises UserError when the inventory cannot be written; nothing is then changed.
    """
    place = stage.place
    try:
        place.host_file.parent.mkdir(parents=True, exist_ok=True)
        with place.host_file.open("x", encoding="utf-8") as file:
            file.write(host_text)
        try:
            _replace(place.list_file, stage.list_text)
        except OSError:
            place.host_file.unlink()
            raise
    except OSError as error:
        raise UserError(
            f"{shown_path(place.directory)} cannot be written: {error.strerror or error}",
            where=str(error.filename or ""),
            ways_out=("an --inventory that can",),
        ) from error


def _replace(file: Path, text: str) -> None:
    """Put a text in a file's place in one step, with the file's own mode; a link stays one."""
    target = file.resolve()
    number, name = tempfile.mkstemp(prefix=".hosts-", dir=target.parent)
    try:
        with open(number, "w", encoding="utf-8", newline="") as opened:  # noqa: PTH123  # a descriptor, not a path
            opened.write(text)
        Path(name).chmod(target.stat().st_mode & 0o777 if target.exists() else 0o644)
        os.replace(name, target)  # noqa: PTH105  # in one step, over what is there
    except OSError:
        with suppress(OSError):
            Path(name).unlink()
        raise
