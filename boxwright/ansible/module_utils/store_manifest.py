"""What a finished model directory holds: a list written once all was verified, and checks against it."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from ansible.module_utils.command import read, write

NAME = ".boxwright-manifest.json"
FORMAT = 1
#: Bytes hashed at a time: large enough that threads hash side by side.
BLOCK = 4 * 1024 * 1024


class Entry(NamedTuple):
    """One file. size: bytes; verified: "sha256" (the hub published it) or "size" (it did not)."""

    path: str
    size: int
    sha256: str
    verified: str
    mtime_ns: int
    inode: int


class Manifest(NamedTuple):
    """A finished directory. kind: "hub" or "quantized"; recipe: how a quantized one was made."""

    kind: str
    repo: str
    revision: str
    files: List[Entry]
    recipe: Optional[Dict[str, Any]] = None


class Flaw(NamedTuple):
    """A file that is not as it should be, and how."""

    path: str
    how: str


class Inspection(NamedTuple):
    """good: as recorded; touched: right bytes, other times or inodes (a copy); flaws: to be fetched again."""

    good: List[Entry]
    touched: List[Entry]
    flaws: List[Flaw]


def load(directory: str) -> Optional[Manifest]:
    """The manifest of a directory; None where there is none that can be read."""
    text = read(os.path.join(directory, NAME))
    if text is None:
        return None
    try:
        document = json.loads(text)
        if document["format"] != FORMAT:
            return None
        files = [Entry(**{key: entry[key] for key in Entry._fields}) for entry in document["files"]]
        return Manifest(
            document["kind"], document["repo"], document["revision"], files, document.get("recipe")
        )
    except (ValueError, KeyError, TypeError):
        return None


def save(directory: str, manifest: Manifest) -> None:
    """Write the manifest, whole or not at all."""
    document = dict(manifest._asdict(), format=FORMAT, files=[entry._asdict() for entry in manifest.files])
    write(os.path.join(directory, NAME), json.dumps(document, indent=1, sort_keys=True) + "\n")


def entry_of(directory: str, path: str, sha256: str, verified: str) -> Entry:
    """The entry of a file that was just verified."""
    state = os.stat(os.path.join(directory, path))
    return Entry(path, state.st_size, sha256, verified, state.st_mtime_ns, state.st_ino)


def sha256_of(path: str, tell: Callable[[int], None] = lambda _: None) -> str:
    """The SHA-256 of a file, hexadecimal; tell: called with the bytes of every block."""
    digest = hashlib.sha256()
    block = memoryview(bytearray(BLOCK))
    with open(path, "rb", buffering=0) as stream:
        while True:
            count = stream.readinto(block)
            if not count:
                return digest.hexdigest()
            digest.update(block[:count])
            tell(count)


def inspect(
    directory: str,
    entries: List[Entry],
    deep: bool = False,
    tell: Callable[[int], None] = lambda _: None,
) -> Inspection:
    """Compare files with their entries: size, time, inode; bytes where those differ, or all if `deep`."""
    inspection = Inspection([], [], [])
    doubtful = []
    for entry in entries:
        path = os.path.join(directory, entry.path)
        try:
            state = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            inspection.flaws.append(Flaw(entry.path, "missing"))
            continue
        if not stat.S_ISREG(state.st_mode):
            inspection.flaws.append(Flaw(entry.path, "not a plain file"))
        elif state.st_size != entry.size:
            inspection.flaws.append(Flaw(entry.path, _wrong_size(state.st_size, entry.size)))
        elif deep or (state.st_mtime_ns, state.st_ino) != (entry.mtime_ns, entry.inode):
            doubtful.append(entry)
        else:
            inspection.good.append(entry)
    if doubtful:
        _hash(directory, doubtful, inspection, tell)
    return inspection


def unchanged(directory: str, entries: List[Entry]) -> List[Entry]:
    """The files that are as recorded: size, time and inode, without reading any."""
    found = []
    for entry in entries:
        try:
            state = os.lstat(os.path.join(directory, entry.path))
        except OSError:
            continue
        if (state.st_size, state.st_mtime_ns, state.st_ino) == (entry.size, entry.mtime_ns, entry.inode):
            found.append(entry)
    return found


def _hash(directory: str, doubtful: List[Entry], inspection: Inspection, tell: Callable[[int], None]) -> None:
    largest_first = sorted(doubtful, key=lambda entry: -entry.size)
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        sums = pool.map(lambda entry: sha256_of(os.path.join(directory, entry.path), tell), largest_first)
        for entry, found in zip(largest_first, sums):  # noqa: B905  (Python 3.9 has no strict)
            if found != entry.sha256:
                inspection.flaws.append(Flaw(entry.path, "other bytes than were verified"))
                continue
            now = entry_of(directory, entry.path, entry.sha256, entry.verified)
            (inspection.good if now == entry else inspection.touched).append(now)


def _wrong_size(found: int, right: int) -> str:
    if found == 0:
        return "empty"
    return "%s: %d of %d bytes" % ("truncated" if found < right else "too long", found, right)


def strangers(directory: str, entries: List[Entry]) -> List[str]:
    """Files in the directory that no entry knows; the manifest itself is none."""
    known = {entry.path for entry in entries} | {NAME}
    found = []
    for place, _, names in os.walk(directory):
        for name in names:
            path = os.path.relpath(os.path.join(place, name), directory)
            if path not in known:
                found.append(path)
    return sorted(found)


def summary(entries: List[Entry]) -> str:
    """How well the files are verified, said as it is."""
    by_sha256 = sum(entry.verified == "sha256" for entry in entries)
    parts = ["%d file%s" % (len(entries), "" if len(entries) == 1 else "s")]
    if by_sha256:
        parts.append("%d verified by sha256" % by_sha256)
    if len(entries) > by_sha256:
        parts.append("%d by size" % (len(entries) - by_sha256) if by_sha256 else "all verified by size only")
    return ", ".join(parts)
