"""What Boxwright did to a host's packages, by group: whose a hold is, what an uninstall takes away."""

from __future__ import annotations

import json
import os
import re
from typing import Dict, Iterable, List

from ansible.module_utils.apt import Step, matches
from ansible.module_utils.command import read, write


class RecordError(Exception):
    """A record that cannot be read."""


class Record:
    """One group's record, /var/lib/boxwright/holds/NAME.json under `root`.

    declared: packages asked for. holds: packages that we hold. installed: packages that were not there
    before us. removed, changed: packages that left or came into another version because of us, with the
    version before. automatic: those of these that nobody had asked for by name.
    """

    def __init__(self, root: str, name: str) -> None:
        self.path = "%s/var/lib/boxwright/holds/%s.json" % (root, name)
        text = read(self.path)
        try:
            data = json.loads(text) if text else {}
        except ValueError as error:
            raise RecordError(
                "%s is damaged (%s): delete it; the holds then count as a person's" % (self.path, error)
            ) from None
        self.exists = text is not None
        self.declared: List[str] = data.get("declared", [])
        self.holds: List[str] = data.get("holds", [])
        self.installed: List[str] = data.get("installed", [])
        self.removed: Dict[str, str] = data.get("removed", {})
        self.changed: Dict[str, str] = data.get("changed", {})
        self.automatic: List[str] = data.get("automatic", [])

    def note(self, steps: Iterable[Step], automatic: Iterable[str]) -> None:
        """What a change adds and takes, with what was there before the first of them.

        automatic: packages that nobody has asked for by name, as apt knows them before the change.
        """
        for step in steps:
            if step.name in self.installed:
                continue
            if step.kind == "remove":
                self.removed[step.name] = self.changed.pop(step.name, step.old or "")
            elif step.kind != "install":
                self.changed.setdefault(step.name, step.old or "")
            elif step.name in self.removed:
                self.changed[step.name] = self.removed.pop(step.name)
            else:
                self.installed = sorted([*self.installed, step.name])
        known = {*self.removed, *self.changed} - {*self.automatic}
        touched = {step.name for step in steps if step.old is not None}
        self.automatic = sorted({*self.automatic, *(known & touched & {*automatic})})

    def text(self) -> str:
        """The file's content."""
        return (
            json.dumps(
                {
                    "declared": sorted(self.declared),
                    "holds": sorted(self.holds),
                    "installed": sorted(self.installed),
                    "removed": self.removed,
                    "changed": self.changed,
                    "automatic": sorted(self.automatic),
                },
                indent=1,
                sort_keys=True,
            )
            + "\n"
        )

    def save(self) -> None:
        """Write it, before what it tells of is done: dying in between must not make our hold a person's."""
        write(self.path, self.text())
        self.exists = True


def other_groups(root: str, name: str) -> Dict[str, str]:
    """Packages that groups other than `name` hold: package to group."""
    directory, found = "%s/var/lib/boxwright/holds" % root, {}
    for entry in sorted(os.listdir(directory)) if os.path.isdir(directory) else []:
        if entry.endswith(".json") and entry != name + ".json":
            for package in Record(root, entry[:-5]).holds:
                found[package] = entry[:-5]
    return found


def blacklist_path(root: str, name: str) -> str:
    """Where unattended-upgrades reads that a group's packages are not for it."""
    return "%s/etc/apt/apt.conf.d/52boxwright-%s" % (root, name)


def blacklist_text(names: List[str], globs: List[str]) -> str:
    """The apt configuration; unattended-upgrades takes Python regular expressions matched from the start."""
    patterns = ["^%s$" % _escaped(name) for name in names if not matches(name, globs)]
    patterns += [
        "^%s$" % _escaped(glob).replace("\\*", ".*").replace("\\?", ".")
        for glob in globs
        if not glob.startswith("!")
    ]
    quoted = "".join('    "%s";\n' % pattern.replace("\\", "\\\\") for pattern in dict.fromkeys(patterns))
    return (
        "// Kept by Boxwright; edits are overwritten.\n"
        "// These packages change when the inventory says so, not at night.\n"
        "Unattended-Upgrade::Package-Blacklist {\n%s};\n" % quoted
    )


def _escaped(name: str) -> str:
    return re.escape(name).replace("\\-", "-")
