"""Binary packages and flat repository indexes, made without Debian's tools on any controller.

Formats: deb(5), deb-control(5), Debian repository format (wiki.debian.org/DebianRepository/Format).
The same input gives the same bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import PurePosixPath

#: Time of every file and index (2025-12-01 00:00 UTC): contents depend on nothing but the sources.
EPOCH = 1764547200


@dataclass(frozen=True)
class File:
    """One file of a package. path: absolute on the host; link: target when it is a symbolic link."""

    path: str
    content: bytes = b""
    mode: int = 0o644
    link: str | None = None


@dataclass(frozen=True)
class Package:
    """One binary package. control: further fields (Depends, …); scripts: maintainer scripts by name."""

    name: str
    version: str
    description: str
    files: tuple[File, ...] = ()
    control: Mapping[str, str] = field(default_factory=dict)
    scripts: Mapping[str, str] = field(default_factory=dict)
    architecture: str = "amd64"
    section: str = "non-free/libs"
    conffiles: tuple[str, ...] = ()

    @property
    def filename(self) -> str:
        """The file's name in a repository."""
        return f"{self.name}_{self.version}_{self.architecture}.deb"

    def fields(self) -> dict[str, str]:
        """The control fields, in the customary order."""
        size = sum(len(file.content) for file in self.files) // 1024 + 1
        return {
            "Package": self.name,
            "Version": self.version,
            "Architecture": self.architecture,
            "Maintainer": "Boxwright lab <lab@boxwright.invalid>",
            "Installed-Size": str(size),
            **self.control,
            "Section": self.section,
            "Priority": "optional",
            "Description": self.description,
        }


def build(package: Package) -> bytes:
    """The .deb file of a package."""
    control = [File("/control", paragraph(package.fields()).encode())]
    if package.conffiles:
        control.append(File("/conffiles", "".join(f"{path}\n" for path in package.conffiles).encode()))
    sums = "".join(
        f"{_digest('md5', file.content)}  {file.path.lstrip('/')}\n"
        for file in package.files
        if file.link is None
    )
    control.append(File("/md5sums", sums.encode()))
    control += [File(f"/{name}", text.encode(), 0o755) for name, text in package.scripts.items()]
    members = [
        ("debian-binary", b"2.0\n"),
        ("control.tar.gz", _tar(control)),
        ("data.tar.gz", _tar(package.files)),
    ]
    archive = io.BytesIO(b"")
    archive.write(b"!<arch>\n")
    for name, content in members:
        archive.write(f"{name:<16}{EPOCH:<12}{0:<6}{0:<6}{0o100644:<8o}{len(content):<10}`\n".encode())
        archive.write(content + b"\n" * (len(content) % 2))
    return archive.getvalue()


def paragraph(fields: Mapping[str, str]) -> str:
    """Control fields as text."""
    return "".join(f"{name}: {value}\n" for name, value in fields.items())


def compress(content: bytes) -> bytes:
    """gzip without a time stamp."""
    return gzip.compress(content, compresslevel=9, mtime=0)


def packages_index(debs: Iterable[tuple[Package, bytes]]) -> bytes:
    """The Packages file of a flat repository, in the order of names and versions given."""
    paragraphs = []
    for package, content in debs:
        fields = package.fields()
        description = fields.pop("Description")
        fields |= {
            "Filename": f"./{package.filename}",
            "Size": str(len(content)),
            "MD5sum": _digest("md5", content),
            "SHA256": _digest("sha256", content),
            "Description": description,
        }
        paragraphs.append(paragraph(fields))
    return "\n".join(paragraphs).encode()


def release_file(files: Mapping[str, bytes], origin: str, label: str, **more: str) -> bytes:
    """The Release file over index files. more: further fields such as Architectures."""
    date = datetime.fromtimestamp(EPOCH, UTC).strftime("%a, %d %b %Y %H:%M:%S UTC")
    text = paragraph({"Origin": origin, "Label": label, **more, "Date": date})
    for name, algorithm in (("MD5Sum", "md5"), ("SHA256", "sha256")):
        text += f"{name}:\n" + "".join(
            f" {_digest(algorithm, content)} {len(content):>16} {path}\n" for path, content in files.items()
        )
    return text.encode()


def _digest(algorithm: str, content: bytes) -> str:
    return hashlib.new(algorithm, content, usedforsecurity=False).hexdigest()


def _tar(files: Iterable[File]) -> bytes:
    buffer = io.BytesIO()
    made: set[str] = set()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for file in files:
            for parent in reversed(PurePosixPath(file.path).parents):
                if str(parent) not in made:
                    made.add(str(parent))
                    directory = _info("." + str(parent).rstrip("/"), 0o755)
                    directory.type = tarfile.DIRTYPE
                    tar.addfile(directory)
            info = _info("." + file.path, file.mode)
            if file.link is None:
                info.size = len(file.content)
                tar.addfile(info, io.BytesIO(file.content))
            else:
                info.type, info.linkname, info.mode = tarfile.SYMTYPE, file.link, 0o777
                tar.addfile(info)
    return compress(buffer.getvalue())


def _info(name: str, mode: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.mode, info.mtime, info.uid, info.gid, info.uname, info.gname = mode, EPOCH, 0, 0, "root", "root"
    return info
