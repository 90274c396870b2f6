"""Layers of a container image: tar archives made in passing from files and directories, always the same."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

BLOCK = 1 << 20


@dataclass(frozen=True)
class Layer:
    """One layer. digest: "sha256:…" of its archive; size: of that in bytes; read: makes the archive again."""

    digest: str
    size: int
    read: Callable[[], Iterator[bytes]]

    @classmethod
    def of(cls, read: Callable[[], Iterator[bytes]]) -> Layer:
        """The layer whose archive `read` makes; makes it once to know digest and size."""
        total, size = hashlib.sha256(), 0
        for part in read():
            total.update(part)
            size += len(part)
        return cls(f"sha256:{total.hexdigest()}", size, read)


def from_file(archive: Path) -> Iterator[bytes]:
    """The bytes of an archive that is a file."""
    with archive.open("rb") as stream:
        while part := stream.read(BLOCK):
            yield part


def from_tree(
    tree: Path,
    place: str,
    time: int,
    wanted: Callable[[Path], bool],
    files: Iterable[tuple[str, bytes, int]] = (),
) -> Iterator[bytes]:
    """An archive of the files of a directory, at `place` in the image, and of some single files.

    Owner, order and times (`time`, in seconds since 1970) do not depend on where or by whom the tree was
    made. wanted: which files, by their paths in the tree; files: path, content and mode of single ones.
    """
    seen: set[str] = set()
    for path in _walk(tree):
        inner = path.relative_to(tree)
        if not wanted(inner):
            continue
        name = f"{place.strip('/')}/{inner.as_posix()}"
        yield from _parents(name, time, seen)
        info = _info(name, time)
        if path.is_symlink():
            info.type, info.linkname = tarfile.SYMTYPE, str(path.readlink())
            yield info.tobuf(tarfile.PAX_FORMAT)
            continue
        info.size = path.stat().st_size
        info.mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
        yield info.tobuf(tarfile.PAX_FORMAT)
        yield from from_file(path)
        yield bytes(-info.size % tarfile.BLOCKSIZE)
    for name, content, mode in sorted(files):
        yield from _parents(name.lstrip("/"), time, seen)
        info = _info(name.lstrip("/"), time)
        info.size, info.mode = len(content), mode
        yield info.tobuf(tarfile.PAX_FORMAT) + content + bytes(-len(content) % tarfile.BLOCKSIZE)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _walk(tree: Path) -> Iterator[Path]:
    for path in sorted(tree.iterdir()):
        if path.is_dir() and not path.is_symlink():
            yield from _walk(path)
        else:
            yield path


def _parents(name: str, time: int, seen: set[str]) -> Iterator[bytes]:
    """The directories above a name that no entry made yet."""
    parts = name.split("/")[:-1]
    for depth in range(1, len(parts) + 1):
        directory = "/".join(parts[:depth])
        if directory not in seen:
            seen.add(directory)
            info = _info(directory, time)
            info.type, info.mode = tarfile.DIRTYPE, 0o755
            yield info.tobuf(tarfile.PAX_FORMAT)


def _info(name: str, time: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.mtime, info.uname, info.gname = time, "root", "root"
    return info
