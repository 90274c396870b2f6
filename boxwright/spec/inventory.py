"""An inventory: hosts, their merged variables, and where each of those stands.

Ansible merges (boxwright.spec.merging); the places come from the files themselves (boxwright.spec.sources).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from boxwright.errors import EXIT_BAD_INPUT, UserError
from boxwright.spec.box import ROLE_PREFIXES
from boxwright.spec.merging import MergeError, Merger
from boxwright.spec.places import Definition, Location, shown_path, split
from boxwright.spec.problem import Problem, SpecErrors
from boxwright.spec.sources import Source, VarsFile, read_source, source_files, vars_files
from boxwright.spec.structure import name_clashes
from boxwright.spec.suggestions import did_you_mean, nearest
from boxwright.texts import numbered, printable

#: Prefixes of the variables that Boxwright reads.
OWN_PREFIXES = ("box_", *ROLE_PREFIXES)
#: Variables of Ansible's that say how a host is reached; none of them is a secret.
_REACH = ("host", "port", "user", "connection", "ssh_private_key_file", "ssh_common_args", "ssh_extra_args")
_CONNECTION = frozenset(f"ansible_{name}" for name in _REACH)
_PATTERN_CHARACTERS = "*?[]!&:~"
_MOST_LISTED = 30


class Inventory:
    """What one or several inventories say together. problems: what is wrong in the form of their files."""

    def __init__(
        self,
        merger: Merger,
        sources: Sequence[Source],
        files: Sequence[VarsFile],
        problems: Sequence[Problem],
    ) -> None:
        self._merger = merger
        self._sources = tuple(sources)
        self._files = tuple(files)
        self._known: dict[str, tuple[Definition, ...]] = {}
        self.problems = tuple(
            sorted(set(problems), key=lambda problem: (problem.file or "", problem.line or 0))
        )

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """Names of all hosts, in the order of the inventory."""
        return self._merger.hosts

    def groups(self, host: str) -> tuple[str, ...]:
        """Names of the host's groups, `all` first."""
        return self._merger.groups_of(host)

    @cached_property
    def group_names(self) -> tuple[str, ...]:
        """Names of all groups."""
        return self._merger.groups

    def directory(self, host: str) -> Path:
        """The directory of the inventory that lists the host: its lock lies there."""
        return self._merger.directory_of(host)

    def raw(self, host: str) -> dict[str, object]:
        """The host's variables as written; templates and encrypted values are Opaque.

        Raises SpecErrors when a file that they come from cannot be read.
        """
        wrong = self.broken(host)
        if wrong:
            raise SpecErrors(wrong)
        try:
            return self._merger.variables(host)
        except MergeError as error:
            raise SpecErrors([Problem(None, None, host, "", "", f"Ansible: {error}")]) from error

    def variables(self, host: str) -> dict[str, object]:
        """The variables that Boxwright reads: box_…, the roles', and those by which the host is reached.

        Templates are filled in, vaults opened. Raises SpecErrors with a problem for each that cannot be had.
        """
        names = [name for name in self.raw(host) if name.startswith(OWN_PREFIXES) or name in _CONNECTION]
        values, failed = self._merger.resolve(host, names)
        if failed:
            raise SpecErrors([self.problem(host, name, "", message) for name, message in failed.items()])
        return values

    def everything(self, host: str) -> dict[str, object]:
        """All variables of a host, also Ansible's and other people's, passwords among them.

        For who has to keep them out of what is sent on. What cannot be filled in or opened is left out: then
        it is known to nobody here.
        """
        return dict(self._merger.resolve(host, list(self.raw(host)))[0])

    def locked(self) -> str | None:
        """Why encrypted values cannot be opened, None when there is a password for them."""
        return self._merger.locked()

    def broken(self, host: str) -> list[Problem]:
        """Problems of the files that the host's variables come from and that cannot be read."""
        groups = self.groups(host)
        return [
            problem
            for file in self._files
            if file.document.broken and file.owner in (groups if file.kind == "group_vars" else (host,))
            for problem in file.document.problems
        ]

    def problems_about(self, hosts: Sequence[str]) -> list[Problem]:
        """`problems` without those of vars files that belong to other hosts only."""
        owners = {name for host in hosts for name in (host, *self.groups(host))}
        others = {
            shown_path(file.file)
            for file in self._files
            if file.owner not in owners and file.owner in (*self.hosts, *self.group_names)
        }
        return [problem for problem in self.problems if problem.file not in others]

    def unreadable_sources(self) -> list[Problem]:
        """Problems of the files that list hosts and cannot be read: names from them are unknown."""
        return [problem for source in self._sources if source.broken for problem in source.problems]

    def refuse_unreadable(self) -> None:
        """Raise SpecErrors where a file that lists hosts is of no use to Ansible: it would run nothing."""
        problems = self.unreadable_sources()
        if problems:
            raise SpecErrors(problems)

    def location(self, host: str, path: str) -> Location | None:
        """Where the host's variable at a path (`box_deployments[0].image`) stands, or what is nearest above.

        None when no file defines the variable.
        """
        name, steps = split(path)
        for definition in reversed(self.definitions(host)):
            if name in definition.entries:
                return definition.location(name, steps)
        return None

    def problem(self, host: str, path: str, value: str, message: str, allowed: str = "") -> Problem:
        """A problem of a host's variable, located; where nothing defines it, the host itself is the place."""
        place = self.location(host, path) or self.place_of(host)
        if place is None:
            return Problem(None, None, host, path, value, message, allowed)
        return Problem(shown_path(place.file), place.line, host, path, value, message, allowed)

    def place_of(self, host: str) -> Location | None:
        """Where a host is listed."""
        for source in self._sources:
            if host in source.structure.hosts:
                return Location(source.file, source.structure.hosts[host])
        return None

    def definitions(self, host: str) -> tuple[Definition, ...]:
        """Everything that gives the host variables, the winning one last: Ansible's order of precedence."""
        if host not in self._known:
            self._known[host] = self._find_definitions(host)
        return self._known[host]

    def _find_definitions(self, host: str) -> tuple[Definition, ...]:
        first, *others = self.groups(host)
        sources = [source.structure for source in self._sources if not source.broken]
        files = [file for file in self._files if not file.document.broken]

        def listed(groups: Sequence[str]) -> list[Definition]:
            return [
                definition
                for group in groups
                for structure in sources
                for name, definition in structure.group_vars
                if name == group
            ]

        def beside(kind: str, owners: Sequence[str]) -> list[Definition]:
            bases = dict.fromkeys(file.base for file in files)
            return [
                file.definition
                for base in bases
                for owner in owners
                for file in files
                if (file.base, file.kind, file.owner) == (base, kind, owner)
            ]

        own = [
            definition for structure in sources for name, definition in structure.host_vars if name == host
        ]
        return (
            *listed([first]),
            *listed(others),
            *beside("group_vars", [first]),
            *beside("group_vars", others),
            *own,
            *beside("host_vars", [host]),
        )


def load(paths: Sequence[Path]) -> Inventory:
    """Read inventories (files or directories) together, later ones winning over earlier ones.

    Mistakes in the form of a file do not stop the reading of the others: they are in `problems`, and the
    hosts that depend on the file have no variables. Raises UserError when a path does not exist.
    """
    places = [_existing(path) for path in paths]
    merger = Merger(places)
    sources = [read_source(file, merger.read_text) for place in places for file in source_files(place)]
    files: list[VarsFile] = []
    problems: list[Problem] = []
    for base in dict.fromkeys(place if place.is_dir() else place.parent for place in places):
        found, unread = vars_files(base, merger.read_text)
        files += found
        problems += unread
    for source in sources:
        problems += source.problems
        reason = None if source.broken else merger.add_source(source.file, is_yaml=bool(source.document))
        source.refused = reason is not None
        if reason and not source.problems:
            told = f"is no inventory: {reason}"
            source.structure.problems.append(Problem(shown_path(source.file), None, None, "", "", told))
            problems += source.problems
    merger.finish()
    if not merger.hosts and not problems:
        names = ", ".join(shown_path(place) for place in places)
        problems.append(
            Problem(names, None, None, "", "", "lists no hosts", "a hosts.yml with all: {hosts: {box1: }}")
        )
    problems += [problem for file in files for problem in file.document.problems]
    problems += name_clashes([(source.file, source.structure) for source in sources])
    inventory = Inventory(merger, sources, files, problems)
    if all(place.is_dir() for place in places) and not inventory.unreadable_sources():
        inventory = Inventory(merger, sources, files, [*problems, *_ownerless(inventory, files)])
    return inventory


def resolve_hosts(inventory: Inventory, names: Sequence[str]) -> list[str]:
    """The hosts that a person named (`box1`, or several with commas), each once, in that order.

    Raises UserError, listing the known ones, when a name is unknown, a group or a pattern: a run reaches
    exactly the boxes that were named, or none.
    """
    wanted = [part.strip() for name in names for part in name.split(",")]
    if not any(wanted):
        raise _no_host(inventory, ["no host is named"], [])
    unknown = list(dict.fromkeys(name for name in wanted if name not in inventory.hosts))
    if unknown:
        inventory.refuse_unreadable()
        reasons = [_why_not(inventory, name) for name in unknown]
        raise _no_host(inventory, [reason for reason, _ in reasons], [way for _, way in reasons if way])
    return list(dict.fromkeys(wanted))


def _why_not(inventory: Inventory, name: str) -> tuple[str, str]:
    """Why a name is no host that can be meant, and what was perhaps meant."""
    if not name:
        return "a host's name is empty (a comma too many?)", ""
    if any(character in name for character in _PATTERN_CHARACTERS):
        return f'"{name}" is a pattern, and hosts are named one by one', ""
    if name in inventory.group_names:
        members = [host for host in inventory.hosts if name in inventory.groups(host)]
        return (
            f'"{name}" is a group, and hosts are named one by one',
            f"--host {','.join(members[:_MOST_LISTED])}",
        )
    guess = nearest(name, inventory.hosts)
    return f'there is no host "{name}"', f"--host {guess}" if guess else ""


def _no_host(inventory: Inventory, reasons: Sequence[str], ways_out: Sequence[str]) -> UserError:
    what = "; ".join(printable(reason) for reason in reasons)
    known = f"known hosts: {_listed(inventory.hosts)}"
    return UserError(what, why=known, ways_out=tuple(dict.fromkeys(ways_out)), status=EXIT_BAD_INPUT)


def _listed(names: Sequence[str]) -> str:
    names = numbered(names)
    more = len(names) - _MOST_LISTED
    return ", ".join(names[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "") if names else "none"


def _existing(path: Path) -> Path:
    place = path.expanduser().absolute()
    if not place.exists():
        raise UserError(
            f"there is no inventory at {path}",
            status=EXIT_BAD_INPUT,
            ways_out=("a directory with a hosts.yml, or such a file",),
        )
    return place


def _ownerless(inventory: Inventory, files: Sequence[VarsFile]) -> list[Problem]:
    """Files of host_vars and group_vars that belong to nobody: a misspelt name that Ansible passes over."""
    problems = []
    for file in files:
        kind, known = (
            ("host", inventory.hosts) if file.kind == "host_vars" else ("group", inventory.group_names)
        )
        if file.owner not in known:
            problems.append(
                Problem(
                    shown_path(file.file),
                    None,
                    None,
                    "",
                    "",
                    f'belongs to no {kind}: there is none named "{file.owner}"',
                    did_you_mean(file.owner, known),
                )
            )
    return problems
