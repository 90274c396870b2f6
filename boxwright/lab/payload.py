"""Files put into a simulated host before it boots."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath


@dataclass(frozen=True)
class Payload:
    """One file of a host. path: absolute; mode: its permissions; owner: its user and group, as a number."""

    path: str
    content: bytes
    mode: int = 0o644
    owner: int = 0

    @classmethod
    def text(cls, path: str, content: str, mode: int = 0o644, owner: int = 0) -> Payload:
        """A file of UTF-8 text."""
        return cls(path, content.encode(), mode, owner)


def archive(files: Iterable[Payload]) -> bytes:
    """The files as a tar archive to unpack at the root directory.

    A service unit among them is also enabled: the links that its [Install] section asks for are added, since
    systemctl cannot do that in a host that has not booted.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for file in files:
            info = tarfile.TarInfo(file.path.lstrip("/"))
            info.size, info.mode, info.uid, info.gid = len(file.content), file.mode, file.owner, file.owner
            tar.addfile(info, io.BytesIO(file.content))
            for link in links(file):
                target = tarfile.TarInfo(link.lstrip("/"))
                target.type, target.linkname = tarfile.SYMTYPE, file.path
                tar.addfile(target)
    return buffer.getvalue()


def links(file: Payload) -> list[str]:
    """The links that enable a unit file, one for each target that its [Install] section names."""
    path = PurePosixPath(file.path)
    if path.parent != PurePosixPath("/etc/systemd/system"):
        return []
    found, section = [], ""
    for raw in file.content.decode().splitlines():
        line = raw.strip()
        if line.startswith("["):
            section = line
        elif section == "[Install]" and "=" in line:
            key, _, value = line.partition("=")
            kind = {"WantedBy": "wants", "RequiredBy": "requires"}.get(key.strip())
            found += [f"{path.parent}/{target}.{kind}/{path.name}" for target in value.split() if kind]
    return found
