"""The source files in a wheel or in an archive of sources, without unpacking it."""

from __future__ import annotations

import io
import re
import tarfile
import zipfile
import zlib
from collections.abc import Mapping
from email.parser import HeaderParser
from typing import BinaryIO

from boxwright.errors import UserError

#: A source file of an engine is far smaller, and so is all of its Python together.
MOST_FILE = 8 * 1024**2
_BROKEN = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
)
_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)")


class Archive:
    """A published package. Raises UserError for one that is broken.

    files: names in it. The source of a package may lie below `python/` or `src/` in an archive of sources.
    """

    def __init__(self, name: str, data: BinaryIO) -> None:
        self._name = name
        try:
            if name.endswith((".whl", ".zip")):
                self._zip: zipfile.ZipFile | None = zipfile.ZipFile(data)
                self._sizes = {one.filename: one.file_size for one in self._zip.infolist()}
                self._members: Mapping[str, bytes] = {}
            else:
                self._zip = None
                self._members = _members(data)
                self._sizes = {one: len(text) for one, text in self._members.items()}
        except _BROKEN as error:
            raise self._broken(error) from error
        self._roots = _roots(self._sizes)

    def read(self, path: str) -> str | None:
        """A file's text by its path in the package, None where there is none. Raises UserError."""
        for root in self._roots:
            name = root + path
            if name not in self._sizes:
                continue
            if self._sizes[name] > MOST_FILE:
                raise UserError(f"{self._name}: {name} is too large to be a source file")
            try:
                data = self._zip.read(name) if self._zip else self._members[name]
                return data.decode("utf-8")
            except (*_BROKEN, UnicodeDecodeError) as error:
                raise self._broken(error) from error
        return None

    def build(self) -> dict[str, str]:
        """What the package's metadata says of PyTorch and CUDA: `torch`, `cuda` (its major version)."""
        name = min(
            (one for one in self._sizes if one.endswith((".dist-info/METADATA", "/PKG-INFO"))),
            key=len,
            default=None,
        )
        if name is None:
            return {}
        data = self._zip.read(name) if self._zip else self._members[name]
        lines = HeaderParser().parsestr(data.decode("utf-8", "replace")).get_all("Requires-Dist") or []
        return build_of(lines)

    def _broken(self, error: Exception) -> UserError:
        return UserError(
            f"{self._name} is no package that can be read",
            why=str(error) or type(error).__name__,
            ways_out=("fetch it again",),
        )


def build_of(requirements: list[str]) -> dict[str, str]:
    """PyTorch's release and CUDA's major version, where the requirements name them without a condition."""
    found: dict[str, str] = {}
    majors: set[str] = set()
    for line in requirements:
        need, _, condition = line.partition(";")
        if "extra" in condition:
            continue
        pinned = re.fullmatch(r"torch\s*==\s*([0-9][0-9.]*)", need.strip())
        if pinned:
            found["torch"] = pinned[1]
        majors |= set(re.findall(r"(?:\[|-|_)cu(\d\d)\b", need))
        majors |= set(re.findall(r"^cuda-python\s*[>=~]=\s*(\d\d)", need.strip()))
    if len(majors) == 1:
        found["cuda"] = majors.pop()
    return found


def _members(data: BinaryIO) -> dict[str, bytes]:
    """The Python files and the metadata of an archive of sources."""
    found: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(data.read()), mode="r:gz") as archive:
        for member in archive:
            wanted = member.isfile() and member.name.endswith((".py", "PKG-INFO"))
            if wanted and member.size <= MOST_FILE and not member.name.startswith(("/", "..")):
                file = archive.extractfile(member)
                if file:
                    found[member.name] = file.read()
    return found


def _roots(names: Mapping[str, int]) -> list[str]:
    """Where packages may lie: at the top of a wheel; in an archive below its one folder."""
    tops = {name.partition("/")[0] for name in names}
    top = f"{tops.pop()}/" if len(tops) == 1 else ""
    return list(dict.fromkeys(["", top, f"{top}python/", f"{top}src/"]))
