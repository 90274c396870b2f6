"""Model repositories from folders: `ORG/NAME` is the branch main, `ORG/NAME@REF` another one."""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass
from pathlib import Path

#: What the hub keeps in large-file storage: these by name (its default .gitattributes), others from 10 MiB.
LARGE_SUFFIXES = (".safetensors", ".bin", ".gguf", ".pt", ".onnx")
LARGE_BYTES = 10 * 2**20


@dataclass(frozen=True)
class Entry:
    """One file of a repository. oid: git's id of it (of its pointer when it is large)."""

    path: str
    file: Path
    size: int
    sha256: str
    oid: str
    pointer_size: int  # bytes of the pointer file; 0 for a file that git holds itself

    @property
    def large(self) -> bool:
        """Whether the hub keeps it in large-file storage."""
        return self.pointer_size > 0

    @property
    def etag(self) -> str:
        """What the hub sends as the file's ETag: sha256 of a large file, git's id of another."""
        return self.sha256 if self.large else self.oid


@dataclass(frozen=True)
class Commit:
    """A repository's state. sha: made from the paths and contents: equal content has one sha for ever."""

    sha: str
    entries: dict[str, Entry]


class Repositories:
    """The repositories under a folder, read again when files change. Thread-safe."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = threading.Lock()
        self._known: dict[tuple[str, int, int], tuple[str, str, int]] = {}

    def names(self) -> list[str]:
        """The repositories, `org/name`, sorted."""
        return sorted(
            {
                f"{path.parent.name}/{path.name.partition('@')[0]}"
                for path in self.root.glob("*/*")
                if path.is_dir() and not path.name.startswith(".")
            }
        )

    def refs(self, repo: str) -> dict[str, Path]:
        """The branches of a repository and their folders; empty when there is no such repository."""
        org, _, name = repo.partition("/")
        if not org or not name or "/" in name or "@" in name or name.startswith(".") or org.startswith("."):
            return {}
        folder = self.root / org
        if not folder.is_dir():
            return {}
        found = {
            path.name.partition("@")[2] or "main": path
            for path in sorted(folder.iterdir())
            if path.is_dir() and path.name.partition("@")[0] == name
        }
        return dict(sorted(found.items(), key=lambda item: (item[0] != "main", item[0])))

    def commit(self, folder: Path) -> Commit:
        """The state of one branch's folder. The first call reads every byte."""
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        entries = [self._entry(path.relative_to(folder).as_posix(), path) for path in paths]
        content = json.dumps([(entry.path, entry.oid, entry.size) for entry in entries])
        return Commit(
            hashlib.sha1(content.encode(), usedforsecurity=False).hexdigest(),
            {entry.path: entry for entry in entries},
        )

    def find(self, repo: str, revision: str) -> Commit | None:
        """The commit that a branch's name or a sha (7 digits or more) means in a repository."""
        refs = self.refs(repo)
        if revision in refs:
            return self.commit(refs[revision])
        for folder in refs.values():
            commit = self.commit(folder)
            if len(revision) >= 7 and commit.sha.startswith(revision):
                return commit
        return None

    def _entry(self, path: str, file: Path) -> Entry:
        stat = file.stat()
        key = (str(file), stat.st_size, stat.st_mtime_ns)
        with self._lock:
            if key not in self._known:
                self._known[key] = _identify(path, file, stat.st_size)
            sha256, oid, pointer_size = self._known[key]
        return Entry(path, file, stat.st_size, sha256, oid, pointer_size)


def _identify(path: str, file: Path, size: int) -> tuple[str, str, int]:
    """sha256, git id and pointer size of a file."""
    with file.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    if not path.endswith(LARGE_SUFFIXES) and size < LARGE_BYTES:
        return sha256, _blob_id(file.read_bytes()), 0
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n".encode()
    return sha256, _blob_id(pointer), len(pointer)


def _blob_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
