"""A group of packages on a host: what is declared, against what is there."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Union

from ansible.module_utils import package_manager
from ansible.module_utils.apt_manager import AptManager
from ansible.module_utils.dnf_manager import DnfManager
from ansible.module_utils.hold_records import Record, other_groups
from ansible.module_utils.packages import (
    Declared,
    PackagesError,
    Rules,
    Step,
    Wanted,
    fits,
    matches,
    parse_wanted,
)
from ansible.module_utils.progress import Progress

Manager = Union[AptManager, DnfManager]
MANAGERS = {"apt": AptManager, "dnf": DnfManager}


class Compared:
    """What one call finds. params: those of held_packages; root: prefix of our own records and settings."""

    def __init__(self, params: Dict[str, Any], check: bool, root: str) -> None:
        self.params, self.check, self.root = params, check, root
        self.manager = self.managed(root)
        self.progress = self.manager.progress = Progress(params.get("progress_file"))
        self.wanted = parse_wanted(params["packages"], params["version"])
        self.alongside = parse_wanted([*params["alongside"], *self.manager.needs], None)
        self.names = [one.name for one in self.wanted]
        self.record = Record(root, params["name"])
        self.others = other_groups(root, params["name"])
        self.packages = self.manager.installed()
        self.held = self.manager.held(self.packages)
        self.waited_for: Optional[str] = None
        self.repaired: List[str] = []
        self.steps: List[Step] = []
        #: Whether the host's packages are no longer as they were found.
        self.touched = False
        #: Why packages that were there before us could not be brought back, or "".
        self.not_restored = ""

    def managed(self, root: str) -> Manager:
        """The host's package manager. Raises PackagesError."""
        name, params = package_manager.name(root), self.params
        if name not in MANAGERS:
            raise PackagesError(
                "this host has no package manager that Boxwright knows (%s)" % " or ".join(MANAGERS)
            )
        return MANAGERS[name](
            root,
            params["timeout_s"],
            params["lock_timeout_s"],
            params["proxy"],
            params["recommends"],
            params["stream"],
        )

    def declared(self) -> Declared:
        """What the package manager's settings for the group are made of."""
        version = self.params["version"] if self.params["pin"] else None
        return Declared(sorted(self.names), self.params["hold"], version or None, self.params["avoid"])

    def to_hold(self) -> List[str]:
        """Installed packages that should be on hold: the declared ones and those that `hold` means."""
        meant = {name for name in self.packages if matches(name, self.params["hold"])}
        return sorted((meant | set(self.names)) & set(self.packages))

    def astray(self) -> Dict[str, bool]:
        """Installed packages that `hold` means in another version, and whether the declared one is there."""
        version = self.params["version"]
        names = [
            name
            for name in self.to_hold()
            if name not in self.names and not fits(self.packages[name].version, version or "*")
        ]
        have = self.manager.available(names)
        return {name: any(fits(one, version) for one in have.get(name, [])) for name in names}

    def replaced(self) -> List[str]:
        """Installed packages that are to leave for the declared ones."""
        return [name for name in self.packages if matches(name, self.params["replaces"])]

    def strays(self) -> List[str]:
        """Those of another branch that the declared one has none of: they would keep it from coming."""
        glob = self.params["strays"]
        if not glob or (self.check and self.params["source_pending"]):
            return []
        of_branch = {name for name, package in self.packages.items() if fits(package.version, glob)}
        return [name for name, have in self.astray().items() if not have and name in of_branch]

    def companions(self) -> List[Wanted]:
        """Installed packages that `hold` means and that exist in the declared version but have another."""
        replaced = self.replaced()
        return [
            Wanted(name, self.params["version"])
            for name, have in self.astray().items()
            if have and name not in replaced
        ]

    def due(self) -> List[Wanted]:
        """Packages that are not as declared."""
        declared = [*self.wanted, *self.alongside]
        return [one for one in declared if not one.met_by(self.packages.get(one.name))] + self.companions()

    def dropped(self) -> List[str]:
        """Ours that are declared no more, but for those that are in place as the declared ones need them.

        After a change between sources that died half-way both sources' names are on record, and what one of
        them names is what the other one depends upon.
        """
        version, globs = self.params["version"], self.params["hold"]
        return [
            name
            for name in self.record.declared
            if name in self.record.installed
            and name in self.packages
            and not (version and matches(name, globs) and fits(self.packages[name].version, version))
        ]

    def leaving(self) -> List[str]:
        """Installed packages that go: replaced ones, strays, and ours that are declared no more."""
        gone = {*self.dropped(), *self.replaced(), *self.strays()}
        return sorted((gone & set(self.packages)) - set(self.names))

    def unfinished(self) -> List[str]:
        """Packages that an interrupted dpkg left half done."""
        return sorted(name for name, package in self.packages.items() if package.unfinished)

    def stuck(self) -> List[str]:
        """Half-done packages that stay as they are in this change: it brings no other version of theirs.

        A module that does not build keeps its package half done, until the declaration goes back to one
        that does.
        """
        if self.params["state"] == "absent":
            leaving = self.record.installed
            coming = [Wanted(*one) for one in {**self.record.removed, **self.record.changed}.items()]
        else:
            leaving, coming = self.leaving(), self.due()
        versions = {one.name: one.version for one in coming if one.version}
        return [
            name
            for name in self.unfinished()
            if name not in leaving
            and (name not in versions or fits(self.packages[name].version, versions[name]))
        ]

    def foreign_holds(self) -> Dict[str, str]:
        """Packages on hold that are not this group's to change: package to whose hold it is."""
        return {
            name: "for " + self.others[name] if name in self.others else "by a person, not by Boxwright"
            for name in self.held
            if name not in self.record.holds
        }

    def rules(self) -> Rules:
        """What a transaction of this group may do."""
        return Rules(
            version=self.params["version"],
            kept_together=self.params["hold"],
            foreign=self.foreign_holds(),
            removable=self.params["may_remove"],
            ours=self.record.installed,
            downgrade=self.params["allow_downgrade"] or self.params["state"] == "absent",
        )
