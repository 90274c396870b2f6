"""What Boxwright did to a host's packages, by group: whose a hold is, what an uninstall takes away."""

from __future__ import annotations

import json
import os
from typing import Dict, Iterable, List, Optional

from ansible.module_utils.command import read, write
from ansible.module_utils.packages import Step


class RecordError(Exception):
    """A record that cannot be read."""


class Record:
    """One group's record, /var/lib/boxwright/holds/NAME.json under `root`.

    declared: packages asked for. holds: packages that we hold. installed: packages that were not there
    before us. removed, changed: packages that left or came into another version because of us, with the
    version before. automatic: those of these that nobody had asked for by name. states: files that dnf
    changes beside the packages (module streams), with their texts before us; None for no file. made: of
    packages that were not there before us, paths that they make when they are set up or run, which were not
    there either.
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
        self.states: Dict[str, Optional[str]] = data.get("states", {})
        self.made: Dict[str, List[str]] = data.get("made", {})

    def note(self, steps: Iterable[Step], automatic: Iterable[str]) -> None:
        """What a change adds and takes, with what was there before the first of them.

        automatic: packages that nobody has asked for by name, as they are known before the change.
        """
        for step in steps:
            if step.name in self.installed or step.kind == "stream":
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
                    **({"states": self.states} if self.states else {}),
                    **({"made": self.made} if self.made else {}),
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
