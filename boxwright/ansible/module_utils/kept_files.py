"""Files of ours and the units that read them: written whole or not at all, each unit started anew once.

A program that began before a file of its own was written has read the old one: the times of both say so, also
after a run that ended between the two.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from ansible.module_utils import systemctl
from ansible.module_utils.command import read, run, write

#: Seconds for the program that checks, and for a unit to start.
CHECK_TIMEOUT, START_TIMEOUT = 60, 120
PUBLIC, SECRET = 0o644, 0o640


class KeptError(Exception):
    """The files cannot be kept so; the text says why. They are as they were."""


class File(NamedTuple):
    """A file as it should be. text: None for none. group: who may read one that is not for everybody."""

    path: str
    text: Optional[str]
    group: Optional[int] = None

    @property
    def mode(self) -> int:
        """Its permissions."""
        return PUBLIC if self.group is None else SECRET

    def is_so(self) -> bool:
        """Whether it is as it should be."""
        if self.text is None:
            return not os.path.lexists(self.path)
        if read(self.path) != self.text:
            return False
        found = os.stat(self.path)
        return found.st_mode & 0o7777 == self.mode and self.group in (None, found.st_gid)

    def put(self) -> None:
        """Write it, or take it away."""
        if self.text is None:
            os.unlink(self.path)
            return
        write(self.path, self.text, 0o600 if self.group is not None else self.mode)
        if self.group is not None:
            os.chown(self.path, 0, self.group)
            os.chmod(self.path, self.mode)


def put(files: Sequence[File], check: Sequence[str] = ()) -> List[str]:
    """Have all files so; the paths that were not. check: a program that refuses them, if it is there.

    Raises KeptError, and then every file is as it was before.
    """
    due = [one for one in files if not one.is_so()]
    before = [File(one.path, read(one.path), _group(one.path)) for one in due]
    try:
        for one in due:
            one.put()
        if due and check and os.path.exists(check[0]):
            done = run(check, timeout=CHECK_TIMEOUT)
            if done.rc:
                raise KeptError("%s refuses what was to be written: %s" % (check[0], done.text))
    except (OSError, KeptError) as error:
        for one in before:
            if not one.is_so():
                one.put()
        raise KeptError(str(error)) from None
    return [one.path for one in due]


def _group(path: str) -> Optional[int]:
    """The group of a file that is not for everybody."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return None if found.st_mode & 0o004 else found.st_gid


def difference(files: Sequence[File]) -> List[Dict[str, str]]:
    """Ansible's diff of the files that are not so; what is not for everybody is not shown."""
    return [
        {
            "before_header": one.path,
            "after_header": one.path,
            "before": "" if one.group is not None else read(one.path) or "",
            "after": "" if one.group is not None else one.text or "",
        }
        for one in files
        if not one.is_so()
    ]


def due_starts(units: Sequence[Dict[str, Any]], changed: Sequence[str]) -> List[str]:
    """Units of which a program has yet to read its files, or that do not run or would not after a boot.

    units: name, and the files that it reads when it starts.
    """
    return [one["name"] for one in units if _is_due(one, changed)]


def _is_due(unit: Dict[str, Any], changed: Sequence[str]) -> bool:
    state = systemctl.show(unit["name"])
    if state.active != "active" or not state.enabled or set(unit["files"]) & set(changed):
        return True
    # systemd tells whole seconds: what was written within that of the start came before it in a run of ours.
    return state.began is not None and any(
        os.path.exists(path) and int(os.stat(path).st_mtime) > state.began for path in unit["files"]
    )


def start(names: Sequence[str]) -> None:
    """Start the units anew, now and at every boot. Raises systemctl.UnitError."""
    systemctl.call("daemon-reload")
    for name in names:
        systemctl.call("enable", name)
        systemctl.restart(name, timeout=START_TIMEOUT)


def stop(names: Sequence[str]) -> List[str]:
    """End units that are not meant any more; those that there was something to do for. Raises UnitError."""
    states = {name: systemctl.show(name) for name in names}
    running = [
        name for name, state in states.items() if state.active not in ("inactive", "failed") or state.enabled
    ]
    for name in running:
        systemctl.call("disable", "--now", name, timeout=START_TIMEOUT)
    return running
