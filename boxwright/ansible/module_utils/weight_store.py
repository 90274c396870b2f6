"""One revision of one repository in the store: what is there, what must come, and putting it in its place."""

from __future__ import annotations

import os
import shutil
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from ansible.module_utils import command, partial_file, store_manifest, store_room, weight_files
from ansible.module_utils.store_manifest import Entry, Flaw, Manifest


class StoreError(Exception):
    """Weights that cannot be had; the text says which, why and what to do."""


class Look(NamedTuple):
    """What a directory holds of what it should. renewed: the manifest must be written anew."""

    entries: List[Entry]
    flaws: List[Flaw]
    renewed: bool


class Store:
    """One revision. wanted: the files to have ({path, size, sha256 or null}); sizes in bytes."""

    def __init__(self, root: str, weights: Dict[str, Any], wanted: List[Dict[str, Any]]) -> None:
        self.root = root
        self.repo, self.revision = str(weights["repo"]), str(weights["revision"])
        self.directory = os.path.normpath(weights["directory"])
        if not self.directory.startswith(os.path.normpath(root) + os.sep):
            raise StoreError("%s lies outside the store %s" % (self.directory, root))
        name = os.path.relpath(self.directory, root).replace(os.sep, "--")
        self.staging = os.path.join(root, ".staging", name)
        self.tree = os.path.join(self.staging, "tree")
        self.lock = os.path.join(root, ".locks", name + ".lock")
        self.manifest = store_manifest.load(self.directory)
        if not wanted and self.manifest:
            wanted = [
                {"path": entry.path, "size": entry.size, "sha256": None} for entry in self.manifest.files
            ]
        self.wanted = wanted

    @property
    def place(self) -> str:
        """Where other stores have the revision, below their root."""
        return "%s/%s" % (self.repo.replace("/", "--"), self.revision)

    # Looking

    def look(self, deep: bool = False, tell: Callable[[int], None] = lambda _: None) -> Look:
        """Compare the directory with what it should hold; reads bytes only where in doubt, or `deep`."""
        self.manifest = store_manifest.load(self.directory)
        known = {entry.path: entry for entry in self.manifest.files} if self.manifest else {}
        expected, flaws = [], []
        for file in self.wanted:
            entry = known.get(file["path"])
            if entry is None:
                found = self._unlisted(file, tell)
                if isinstance(found, Flaw):
                    flaws.append(found)
                else:
                    expected.append(found)
            elif entry.size != file["size"] or (file["sha256"] or entry.sha256) != entry.sha256:
                flaws.append(Flaw(file["path"], "not what the hub records"))
            else:
                expected.append(entry)
        inspection = store_manifest.inspect(self.directory, expected, deep, tell)
        entries = inspection.good + inspection.touched
        renewed = bool(inspection.touched) or {entry.path for entry in entries} != set(known)
        return Look(entries, flaws + inspection.flaws, renewed)

    def _unlisted(self, file: Dict[str, Any], tell: Callable[[int], None]) -> "Entry | Flaw":
        """A wanted file that no manifest knows: taken over if it is right (a person copied it here)."""
        path = os.path.join(self.directory, file["path"])
        if not os.path.isfile(path):
            return Flaw(file["path"], "missing")
        if os.path.getsize(path) != file["size"]:
            return Flaw(file["path"], "%d of %d bytes" % (os.path.getsize(path), file["size"]))
        digest = store_manifest.sha256_of(path, tell)
        if file["sha256"] and digest != file["sha256"]:
            return Flaw(file["path"], "other bytes than the hub records")
        return store_manifest.entry_of(
            self.directory, file["path"], digest, "sha256" if file["sha256"] else "size"
        )

    def strangers(self, entries: List[Entry]) -> List[str]:
        """Files in the directory that do not belong to the revision."""
        return store_manifest.strangers(self.directory, entries) if os.path.isdir(self.directory) else []

    # Staging

    def due(self, look: Look) -> List[Dict[str, Any]]:
        """The files to fetch."""
        flawed = {flaw.path for flaw in look.flaws}
        return [file for file in self.wanted if file["path"] in flawed]

    def staged(self, files: List[Dict[str, Any]]) -> int:
        """Bytes of these files that an earlier, interrupted run has already brought."""
        return sum(self._staged(os.path.join(self.tree, file["path"]), file["size"]) for file in files)

    def _staged(self, path: str, size: int) -> int:
        if _size(path) == size:
            return size
        held: int = partial_file.held(path)
        return min(size, held)

    def clean_staging(self, files: List[Dict[str, Any]]) -> None:
        """Remove what an interrupted run left that is of no use: files that are not to come any more."""
        endings = ("", partial_file.SUFFIX, partial_file.MAP_SUFFIX)
        useful = {file["path"] + ending for file in files for ending in endings}
        for place, _, names in os.walk(self.tree):
            for name in names:
                path = os.path.join(place, name)
                if os.path.relpath(path, self.tree) not in useful:
                    os.unlink(path)

    def borrow(self, files: List[Dict[str, Any]]) -> None:
        """Stage files that another revision of the store has already: the same SHA-256, one copy on the disk.

        Only whole ones, as sizes, times and inodes tell; they are hashed again before they count.
        """
        folder = os.path.dirname(self.directory)
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            directory = os.path.join(folder, name)
            manifest = store_manifest.load(directory) if directory != self.directory else None
            if manifest is None:
                continue
            known = {entry.sha256: entry for entry in store_manifest.unchanged(directory, manifest.files)}
            for file in files:
                target = os.path.join(self.tree, file["path"])
                entry = known.get(file["sha256"] or "")
                if entry is None or entry.size != file["size"] or os.path.exists(target):
                    continue
                os.makedirs(os.path.dirname(target), mode=0o755, exist_ok=True)
                os.link(os.path.join(directory, entry.path), target)

    def need(self, files: List[Dict[str, Any]]) -> store_room.Need:
        """The room that fetching the files takes."""
        return store_room.Need(self.root, sum(file["size"] for file in files) - self.staged(files), self.repo)

    def text(self, name: str) -> Optional[str]:
        """A describing file's text, from what has just been fetched or from the store."""
        text: Optional[str] = command.read(os.path.join(self.tree, name))
        return text if text is not None else command.read(os.path.join(self.directory, name))

    def objection(self, code: bool) -> Optional[str]:
        """Why the described revision must not be fetched, from its small files; None when it may."""
        names = [file["path"] for file in self.wanted]
        if not code:
            texts = {name: self.text(name) for name in weight_files.MAY_MAP_CODE if name in names}
            refused: Optional[str] = weight_files.code_refusal(
                self.repo, {name: text for name, text in texts.items() if text is not None}
            )
            if refused:
                return refused
        index = self.text(weight_files.INDEX) if weight_files.INDEX in names else None
        if index is None:
            return None
        try:
            missing = weight_files.missing_shards(index, names)
        except ValueError as error:
            return "%s: %s; declare another revision" % (self.repo, error)
        if missing:
            return (
                "%s at %s is not whole: its index lists %s, which the repository lacks; declare another "
                "revision"
                % (
                    self.repo,
                    self.revision,
                    ", ".join(missing),
                )
            )
        return None

    # Finishing

    def publish(self, look: Look, sums: Dict[str, str]) -> List[Entry]:
        """Put fetched files in their place and write the manifest. sums: their SHA-256 by path.

        A new revision appears whole, by one rename. In an existing one each flawed file is replaced by one
        rename; a process that has the old file open keeps it.
        """
        recorded = {file["path"]: file["sha256"] for file in self.wanted}
        # Of a client of an earlier release, which kept its notes here.
        shutil.rmtree(os.path.join(self.tree, ".cache"), ignore_errors=True)
        new = not os.path.exists(self.directory)
        place = self.tree if new else self.directory
        for path in sums:
            os.chmod(os.path.join(self.tree, path), 0o644)
            if not new:
                os.makedirs(os.path.dirname(os.path.join(self.directory, path)), mode=0o755, exist_ok=True)
                os.replace(os.path.join(self.tree, path), os.path.join(self.directory, path))
        fresh = [
            store_manifest.entry_of(place, path, digest, "sha256" if recorded[path] else "size")
            for path, digest in sorted(sums.items())
        ]
        entries = [entry for entry in look.entries if entry.path not in sums] + fresh
        self.record(place, entries)
        if new:
            os.makedirs(os.path.dirname(self.directory), mode=0o755, exist_ok=True)
            for each in (
                self.tree,
                *(os.path.join(at, name) for at, names, _ in os.walk(self.tree) for name in names),
            ):
                os.chmod(each, 0o755)
            os.rename(self.tree, self.directory)
            _flush(os.path.dirname(self.directory))
        shutil.rmtree(self.staging, ignore_errors=True)
        return entries

    def record(self, place: str, entries: List[Entry]) -> None:
        """Write the manifest into a directory."""
        ordered = sorted(entries, key=lambda entry: entry.path)
        store_manifest.save(place, Manifest("hub", self.repo, self.revision, ordered))


def distinct(weights: List[Dict[str, Any]], kind: str) -> List[Dict[str, Any]]:
    """Weights of one kind, each directory once."""
    found = {
        (entry.get("directory") or entry.get("path")): entry for entry in weights if entry.get("kind") == kind
    }
    return list(found.values())


def needed(weights: Dict[str, Any], quantized: List[Dict[str, Any]], served: List[str]) -> bool:
    """Whether weights must be in the store: not when engines read only what was made of them.

    quantized: what is made of weights ({source, directory}); served: directories that engines read.
    """
    directory = os.path.normpath(weights["directory"])
    if directory in [os.path.normpath(path) for path in served] or os.path.exists(directory):
        return True
    made = [
        entry["directory"] for entry in quantized if entry["source"].get("directory") == weights["directory"]
    ]
    return not made or any(store_manifest.load(path) is None for path in made)


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return -1


def _flush(directory: str) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
