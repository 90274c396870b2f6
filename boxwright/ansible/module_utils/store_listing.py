"""What lies in a box's store: revisions, how well they are verified, who uses them; and removing one."""

from __future__ import annotations

import json
import os
import re
import shutil
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from ansible.module_utils import store_manifest, store_room
from ansible.module_utils.store_manifest import Manifest

DIRECTORY = re.compile(r"(?P<revision>[0-9a-f]{40})(?P<made>-[a-z0-9-]+)?")


class Declared(NamedTuple):
    """A model of the declaration; revision None: any, for nothing says which."""

    repo: str
    revision: Optional[str]


class Revision(NamedTuple):
    """One directory of the store.

    state: whole, flawed, unfinished (a fetch or a quantization that goes on or was interrupted) or unknown
    (without a manifest). used: releases that serve it (`deployment/id`, the live ones first); declared: the
    inventory asks for it. flaws: {path, how}.
    """

    directory: str
    repo: str
    revision: str
    made: str
    size: int
    files: int
    by_sha256: int
    state: str
    flaws: List[Dict[str, str]]
    used: List[str]
    declared: bool


def users(releases: List[Dict[str, Any]]) -> Dict[str, List[str]]:
    """Releases by the directory that they serve. releases: as host_reading.releases has them."""
    found: Dict[str, List[str]] = {}
    for release in sorted(releases, key=lambda one: not one["current"]):
        try:
            record = json.loads(release["record"] or "{}")
        except ValueError:
            continue
        name = "%s/%s%s" % (release["deployment"], release["id"], " (live)" if release["current"] else "")
        for field in ("model_directory", "drafter_directory"):
            if record.get(field):
                found.setdefault(os.path.normpath(record[field]), []).append(name)
    return found


def listing(
    root: str,
    served: Dict[str, List[str]],
    declared: List[Declared],
    deep: bool = False,
    tell: Callable[[str, int, int], None] = lambda repo, done, total: None,
) -> List[Revision]:
    """Every revision of a store. deep: read and hash every byte; tell: repository, bytes hashed, of all."""
    found = []
    for name in _names(root):
        for child in _names(os.path.join(root, name)):
            match = DIRECTORY.fullmatch(child)
            if match and "--" in name:
                directory = os.path.join(root, name, child)
                found.append(_revision(directory, name, match, served, declared, deep, tell))
    for name in _names(os.path.join(root, ".staging")):
        repo, _, child = name.rpartition("--")
        match = DIRECTORY.fullmatch(child)
        revision, made = (match.group("revision"), _made(match)) if match else (child[:40], "")
        directory = os.path.join(root, ".staging", name)
        size, files = store_room.disk_use(directory)
        wanted = _wanted(_repo(repo), revision, declared)
        found.append(
            Revision(
                directory, _repo(repo), revision, made, size, len(files), 0, "unfinished", [], [], wanted
            )
        )
    return found


def _revision(
    directory: str,
    name: str,
    match: "re.Match[str]",
    served: Dict[str, List[str]],
    declared: List[Declared],
    deep: bool,
    tell: Callable[[str, int, int], None],
) -> Revision:
    repo, revision, made = _repo(name), match.group("revision"), _made(match)
    used = served.get(os.path.normpath(directory), [])
    wanted = _wanted(repo, revision, declared)
    manifest = store_manifest.load(directory)
    if manifest is None:
        size, files = store_room.disk_use(directory)
        return Revision(directory, repo, revision, made, size, len(files), 0, "unknown", [], used, wanted)
    total, done = sum(entry.size for entry in manifest.files), [0]

    def count(size: int) -> None:
        done[0] += size
        tell(repo, done[0], total)

    inspection = store_manifest.inspect(directory, manifest.files, deep, count)
    flaws = [flaw._asdict() for flaw in inspection.flaws]
    _doubt(directory, manifest, [flaw["path"] for flaw in flaws])
    by_sha256 = sum(entry.verified == "sha256" for entry in manifest.files)
    state = "flawed" if flaws else "whole"
    return Revision(
        directory, repo, revision, made, total, len(manifest.files), by_sha256, state, flaws, used, wanted
    )


def _doubt(directory: str, manifest: Manifest, paths: List[str]) -> None:
    """Let the next run, which looks at sizes and times only, look at these files' bytes."""
    if paths:
        files = [entry._replace(inode=0) if entry.path in paths else entry for entry in manifest.files]
        if files != manifest.files:
            store_manifest.save(directory, manifest._replace(files=files))


def free(root: str, revision: Revision) -> bool:
    """Remove a revision that nothing uses; False where a run is at it just now."""
    name = os.path.relpath(revision.directory, root).replace(os.sep, "--")
    if revision.state == "unfinished":
        name = os.path.basename(revision.directory)
    # One quantization at a time works in a store; fetches have a lock for each directory.
    lock = os.path.join(root, ".locks", "quantize.lock" if revision.made else name + ".lock")
    try:
        with store_room.alone(lock, lambda holder: None, 0):
            gone = os.path.join(root, ".staging", ".gone-" + name)
            os.makedirs(os.path.dirname(gone), exist_ok=True)
            shutil.rmtree(gone, ignore_errors=True)
            # Away at once, so that no run ever finds half of it.
            os.rename(revision.directory, gone)
            shutil.rmtree(gone)
    except store_room.BusyError:
        return False
    parent = os.path.dirname(revision.directory)
    if os.path.basename(parent) != ".staging" and not os.listdir(parent):
        os.rmdir(parent)
    return True


def _wanted(repo: str, revision: str, declared: List[Declared]) -> bool:
    return any(one.repo == repo and one.revision in (None, revision) for one in declared)


def _made(match: "re.Match[str]") -> str:
    return (match.group("made") or "").lstrip("-")


def _repo(name: str) -> str:
    return name.replace("--", "/", 1)


def _names(directory: str) -> List[str]:
    try:
        return sorted(name for name in os.listdir(directory) if not name.startswith("."))
    except OSError:
        return []
