"""Releases on trial: one serves, examined but not promoted, and the release that counts comes back after it.

What counts stays as it was all the while: `current`, and the unit that is started at boot. The unit of a
trial lies in /run, as that of any release before it has answered, so a reboot ends the trial. Against a run
that never comes back for it (killed, or cut off), a timer of systemd's does.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

from ansible.module_utils import systemctl
from ansible.module_utils.command import read, run, write
from ansible.module_utils.engine_prune import references
from ansible.module_utils.engine_store import TRIALS_FILE, Store
from ansible.module_utils.engine_unit import TRIAL_DIRECTORY, unit_name

#: The unit that brings the cards to their declared limits.
LIMITS_UNIT = "boxwright-gpu-tuning.service"
#: What the timer does, whoever is left: the unit of the trial goes, and what is started at boot starts.
_RETURN = (
    'if systemctl is-active --quiet "$3"; then systemctl reload "$3"; fi; '
    'test -e "$1" || exit 0; rm -f "$1"; systemctl daemon-reload; systemctl reset-failed "$2"; '
    'systemctl restart "$2"'
)


class TrialError(Exception):
    """No trial can be made; the text says why."""


class Record(NamedTuple):
    """What was there before the trials. origin: the release that counts; known: those on the disk."""

    origin: str
    known: List[str]
    since: str


def record_path(store: Store) -> str:
    """Where it is kept."""
    return str(os.path.join(store.directory, TRIALS_FILE))


def kept(store: Store) -> Optional[Record]:
    """What an earlier call of a run that has not ended its trials recorded; None without one."""
    text = read(record_path(store))
    try:
        found = json.loads(text) if text else None
        if not found:
            return None
        return Record(str(found["origin"]), [str(one) for one in found["known"]], str(found["since"]))
    except (ValueError, KeyError, TypeError):
        return None


def begin(store: Store) -> Record:
    """Record what is there, where no trial is under way. Raises TrialError where no release counts."""
    found, origin = kept(store), store.link("current")
    if found is not None:
        return found._replace(origin=origin or found.origin)
    if origin is None:
        raise TrialError("no release of %s has served on this host yet" % store.name)
    made = Record(origin, store.releases(), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
    write(record_path(store), json.dumps(made._asdict(), indent=1) + "\n", 0o600)
    return made


def forget(store: Store) -> Tuple[List[str], Set[str]]:
    """End the trials: the releases that were made for them go, with the record.

    Gives the ids that went, and the images that they were made of.
    """
    found = kept(store)
    if found is None:
        return [], set()
    linked = {store.link("current"), store.link("previous")}
    gone = [one for one in store.releases() if one not in found.known and one not in linked]
    images = {reference for one in gone for reference in references(store, one)}
    store.remove(gone)
    os.unlink(record_path(store))
    return gone, images


class Timer:
    """The timer that brings back what counts, should nobody else."""

    def __init__(self, name: str, directory: str = TRIAL_DIRECTORY) -> None:
        # No deployment has an underscore in its name, so none has a unit of this name.
        self.unit = "boxwright-return_%s" % name
        self._words = [os.path.join(directory, unit_name(name)), unit_name(name), LIMITS_UNIT]

    def arm(self, seconds: int) -> None:
        """Have it go off in so many seconds from now, and not before. Raises TrialError."""
        self.disarm()
        done = run(
            [
                "systemd-run",
                "--quiet",
                "--collect",
                "--unit=" + self.unit,
                "--on-active=%ds" % seconds,
                "--timer-property=AccuracySec=1s",
                "/bin/sh",
                "-c",
                _RETURN,
                "boxwright",
                *self._words,
            ]
        )
        if done.rc:
            raise TrialError("systemd takes no timer for the way back, so nothing was begun: %s" % done.text)

    def disarm(self) -> None:
        """Have it not go off."""
        run(["systemctl", "stop", self.unit + ".timer"])


def end_foreign(service: Any, origin: str) -> Callable[[str], None]:
    """For who waits for the lock: stops the release on trial, at which whoever starts it gives up."""

    def waiting(holder: str) -> None:
        running = service.running_release()
        if running is not None and running != origin:
            service.stop()

    return waiting


def limits_back() -> Optional[str]:
    """Have the cards at their declared limits again; what is wrong, None where they are."""
    try:
        if systemctl.show(LIMITS_UNIT).active == "active":
            systemctl.call("reload", LIMITS_UNIT, timeout=240)
    except systemctl.UnitError as error:
        return str(error)
    return None


def told(record: Record) -> Dict[str, Any]:
    """For the controller."""
    return {"origin": record.origin, "since": record.since}
