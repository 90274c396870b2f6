"""Releases of a deployment on the host: one exact state each, named by its content, in its own directory.

`<root>/releases/<deployment>/<id>/` holds `release.json` (the state and the part of the plan that made it)
and the unit's text; `current` is the release that answered last, `previous` the one before it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from typing import Any, Dict, List, NamedTuple, Optional

from ansible.module_utils.command import ensure, read, write

RELEASE_FILE = "release.json"
UNIT_FILE = "unit.service"
FAILURE_FILE = "failure.json"
REFERENCES_FILE = "references.json"
#: While trials are made (engine_trial): the release that counts, and those that are no trials.
TRIALS_FILE = ".trial.json"
#: Checkpoints of a deployment whose answers are remembered.
KEPT_REFERENCES = 8
LINKS = ("current", "previous")
#: What release.json holds beside the state.
_BESIDE = ("id", "made", "image", "plan")


def release_id(state: Dict[str, Any]) -> str:
    """Twelve hexadecimal digits of the sha256 of the state: the same state has the same id, on any host."""
    text = json.dumps(state, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:12]


def checkpoint(state: Dict[str, Any]) -> Optional[str]:
    """What tells a release's checkpoint from others; None for a directory whose files nothing pins."""
    return (
        release_id({"revision": state["revision"], "quantize": state.get("quantize")})
        if state.get("revision")
        else None
    )


def deployments(root: str) -> List[str]:
    """Every deployment that has, or had, a release on this host."""
    directory = os.path.join(root, "releases")
    try:
        return sorted(entry.name for entry in os.scandir(directory) if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []


class ChoiceError(Exception):
    """It is not clear which deployment is meant; the text says which there are."""


def chosen(root: str, wanted: Optional[str]) -> str:
    """The deployment that is meant: the one that was named, or the only one. Raises ChoiceError."""
    known = deployments(root)
    if wanted in known:
        return str(wanted)
    have = ", ".join(known) or "none"
    if wanted:
        raise ChoiceError("no release of a deployment %r is on the host; it has: %s" % (wanted, have))
    if len(known) != 1:
        raise ChoiceError("which deployment? The host has: %s (--deployment)" % have)
    return known[0]


class Release(NamedTuple):
    """One release as it lies on the disk. plan: the deployment's part of the plan that made it."""

    id: str
    state: Dict[str, Any]
    plan: Dict[str, Any]
    unit: str


class Store:
    """The releases of one deployment."""

    def __init__(self, root: str, name: str) -> None:
        self.name = name
        self.directory = os.path.join(root, "releases", name)

    def path(self, release: str, *names: str) -> str:
        """The directory of a release, or a file in it."""
        return os.path.join(self.directory, release, *names)

    def link(self, name: str) -> Optional[str]:
        """The id that `current` or `previous` points to; None where there is none (any more)."""
        try:
            target = os.path.basename(os.readlink(os.path.join(self.directory, name)))
        except (FileNotFoundError, NotADirectoryError, OSError):
            return None
        return target if os.path.exists(self.path(target, UNIT_FILE)) else None

    def read(self, release: Optional[str]) -> Optional[Release]:
        """A release by id; None when it is not here, or not whole."""
        if release is None:
            return None
        text, unit = read(self.path(release, RELEASE_FILE)), read(self.path(release, UNIT_FILE))
        try:
            document = json.loads(text) if text is not None else None
        except ValueError:
            return None
        if not isinstance(document, dict) or unit is None:
            return None
        # Somebody's edit, or another release's file.
        if document.get("id") != release or not isinstance(document.get("plan"), dict):
            return None
        state = {key: value for key, value in document.items() if key not in _BESIDE}
        return Release(release, state, document["plan"], unit)

    def write(
        self,
        release: str,
        state: Dict[str, Any],
        plan: Dict[str, Any],
        unit: str,
        check: bool = False,
        files: Optional[Dict[str, str]] = None,
    ) -> bool:
        """Put a release into its directory; True when it was not there as it is to be.

        files: name -> text of what its container finds there, besides.

        The plan beside the state says more than the state (speeds, advice, the image's tag). When only it
        differs, it is replaced without counting as a change: the engine need not be started anew for it.
        """
        before = self.read(release)
        changed = before is None or before.unit != unit or before.state != state
        beside = {self.path(release, name): text for name, text in (files or {}).items()}
        changed = changed or any(read(path) != text for path, text in beside.items())
        if check or (not changed and before is not None and before.plan == plan):
            return changed
        made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        if not changed:
            made = json.loads(read(self.path(release, RELEASE_FILE)) or "{}").get("made", made)
        os.makedirs(os.path.dirname(self.directory), mode=0o700, exist_ok=True)
        document = dict(state, id=release, made=made, image=plan.get("image"), plan=plan)
        write(self.path(release, RELEASE_FILE), json.dumps(document, indent=1, sort_keys=True) + "\n", 0o600)
        for path, text in beside.items():
            ensure(path, text, 0o644)
        # Written last: a release is there when its unit is.
        ensure(self.path(release, UNIT_FILE), unit, 0o644)
        return changed

    def promote(self, release: str) -> bool:
        """Make a release the current one, and what was current the previous; True when that changed it."""
        before = self.link("current")
        if before == release:
            return False
        if before is not None:
            self._point("previous", before)
        self._point("current", release)
        self._is_no_trial(release)
        return True

    def _is_no_trial(self, release: str) -> None:
        """What has come to count does not go with the trials of a run that was killed before it."""
        path = os.path.join(self.directory, TRIALS_FILE)
        try:
            found = json.loads(read(path) or "{}")
            if release not in found["known"]:
                found["known"].append(release)
                write(path, json.dumps(found, indent=1) + "\n", 0o600)
        except (ValueError, KeyError, TypeError, AttributeError):
            return

    def releases(self) -> List[str]:
        """The ids on the disk, oldest first."""
        try:
            found = [
                entry
                for entry in os.scandir(self.directory)
                if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")
            ]
        except FileNotFoundError:
            return []
        return [entry.name for entry in sorted(found, key=lambda entry: (entry.stat().st_mtime, entry.name))]

    def excess(self, keep: int) -> List[str]:
        """The oldest releases beyond `keep`; what the links point to is never among them."""
        linked = {self.link(name) for name in LINKS}
        spare = [release for release in self.releases() if release not in linked]
        return spare[: max(0, len(self.releases()) - max(keep, 1))]

    def remove(self, releases: List[str]) -> None:
        """Take releases off the disk."""
        for release in releases:
            shutil.rmtree(self.path(release))

    def reference(self, key: str) -> Optional[str]:
        """What a checkpoint answered to the fixed prompt in a release that served; None when none has yet."""
        found = self._references().get(key)
        return found if isinstance(found, str) else None

    def remember(self, key: str, answer: Optional[str]) -> None:
        """Keep what a checkpoint answered: that of the next release is held against it. None forgets it."""
        known = {other: text for other, text in self._references().items() if other != key}
        if answer is not None:
            known[key] = answer
        kept = dict(list(known.items())[-KEPT_REFERENCES:])
        ensure(os.path.join(self.directory, REFERENCES_FILE), json.dumps(kept, indent=1) + "\n", 0o600)

    def _references(self) -> Dict[str, Any]:
        text = read(os.path.join(self.directory, REFERENCES_FILE))
        try:
            found = json.loads(text) if text else {}
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def forget(self) -> None:
        """Remove everything about this deployment's releases."""
        shutil.rmtree(self.directory, ignore_errors=False)

    def _point(self, name: str, release: str) -> None:
        temporary = os.path.join(self.directory, ".%s.new" % name)
        if os.path.lexists(temporary):
            os.unlink(temporary)
        os.symlink(release, temporary)
        os.replace(temporary, os.path.join(self.directory, name))
