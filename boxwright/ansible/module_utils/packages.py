"""What every package manager has in common: packages, steps of a change, and which steps may be taken."""

from __future__ import annotations

import fnmatch
import re
from typing import Dict, Iterable, List, NamedTuple, Optional, Tuple


class PackagesError(Exception):
    """The packages cannot be made true; the text says why and what was left."""


class StaleError(PackagesError):
    """The same, where old or missing package lists may be the reason."""


class Package(NamedTuple):
    """An installed (or half installed) package.

    version: as its manager writes it, `[epoch:]version-release`. unfinished: an interrupted run began
    something with it. others: further versions that are installed beside this one, as kernels are.
    """

    name: str
    version: str
    healthy: bool = True
    unfinished: bool = False
    others: Tuple[str, ...] = ()


class Step(NamedTuple):
    """One line of what would be done. kind: "install", "upgrade", "downgrade", "remove"."""

    kind: str
    name: str
    old: Optional[str]
    new: Optional[str]

    def text(self) -> str:
        """For a person: "nvidia-open 570… -> 580…"."""
        return "%s %s %s" % (self.kind, self.name, " -> ".join(v for v in (self.old, self.new) if v))


class Wanted(NamedTuple):
    """A declared package. version: exact, a glob, or None for whatever is there or comes."""

    name: str
    version: Optional[str]

    def met_by(self, package: Optional[Package]) -> bool:
        """Whether the installed package is what was declared."""
        return (
            package is not None
            and package.healthy
            and (
                self.version is None
                or any(fits(one, self.version) for one in (package.version, *package.others))
            )
        )


class Plan(NamedTuple):
    """A simulated change. command: its words for the package manager."""

    steps: List[Step]
    command: List[str]


class Rules(NamedTuple):
    """What a transaction may do. Globs as in `matches`.

    version: that of every package `kept_together` means, where the sources have it. foreign: packages that
    must not change, with the reason. removable: globs and names that may go. ours: packages that were not
    there before us; they go when nothing needs them any more. downgrade: whether versions may go down.
    """

    version: Optional[str]
    kept_together: List[str]
    foreign: Dict[str, str]
    removable: List[str]
    ours: List[str]
    downgrade: bool


class Declared(NamedTuple):
    """What a group's settings are made of. version: None where it pins nothing. avoid: releases of apt's."""

    names: List[str]
    globs: List[str]
    version: Optional[str]
    avoid: List[str]


def matches(name: str, globs: Iterable[str]) -> bool:
    """Whether `name` is meant by `globs`; a glob with a leading "!" takes names out again, in order."""
    meant = False
    for glob in globs:
        if glob.startswith("!"):
            meant = meant and not fnmatch.fnmatchcase(name, glob[1:])
        else:
            meant = meant or fnmatch.fnmatchcase(name, glob)
    return meant


#: Architectures as rpm writes them after a version.
_ARCHITECTURE = re.compile(r"\.(?:noarch|x86_64|aarch64)$")


def fits(version: str, wanted: str) -> bool:
    """Whether a version, `[epoch:]version-release`, is the wanted one: exact, or a glob.

    People leave the epoch out, which then may be any, and write the architecture that rpm shows.
    """
    glob = _ARCHITECTURE.sub("", wanted)
    bare = version.partition(":")[2] or version
    return matches(version, [glob]) or (":" not in glob and matches(bare, [glob]))


def parse_wanted(packages: List[str], version: Optional[str]) -> List[Wanted]:
    """`name` or `name=version`; version: of those that name none."""
    wanted = []
    for text in packages:
        name, _, own = text.partition("=")
        wanted.append(Wanted(name.strip(), own.strip() or version or None))
    return wanted


def choose(due: List[Wanted], versions: Dict[str, List[str]]) -> Dict[str, str]:
    """The newest version that fits each package, by name.

    versions: what the host's sources have, newest first. Raises StaleError that lists what is there.
    """
    chosen, missing = {}, []
    for one in due:
        have = versions.get(one.name, [])
        fitting = [v for v in have if one.version is None or fits(v, one.version)]
        if not have:
            missing.append("%s is in none of the host's package sources" % one.name)
        elif not fitting:
            missing.append(
                "%s has no version %s; there is %s" % (one.name, one.version, ", ".join(have[:12]))
            )
        else:
            chosen[one.name] = fitting[0]
    if missing:
        raise StaleError("\n".join([*missing, "Nothing was changed."]))
    return chosen


def refusals(steps: List[Step], rules: Rules, manager: str, unhold: str) -> List[str]:
    """Why the steps must not be taken: changes of held packages, downgrades, stray removals.

    manager: its name. unhold: the command that lifts a hold.
    """
    found = []
    touched = [
        "%s (held %s)" % (step.text(), rules.foreign[step.name])
        for step in steps
        if step.name in rules.foreign
    ]
    if touched:
        found.append(
            "these packages would have to change but are on hold: %s. Lift the hold (%s) "
            "if it is no longer meant" % ("; ".join(touched), unhold)
        )
    down = [step.text() for step in steps if step.kind == "downgrade"]
    if down and not rules.downgrade:
        found.append("versions would go down: %s" % "; ".join(down))
    lost = [step.name for step in steps if step.kind == "remove" and not matches(step.name, rules.removable)]
    if lost:
        found.append("%s would remove packages that nobody asked to remove: %s" % (manager, ", ".join(lost)))
    return found
