"""What a host has room for: memory, disks and ports. Sizes are bytes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Memory:
    """Main memory in bytes."""

    total: int
    available: int
    swap: int = 0


@dataclass(frozen=True)
class Filesystem:
    """Where a path lies. device: tells filesystems apart. available: bytes that files may still take."""

    path: str
    mount: str
    device: str
    size: int
    available: int
    read_only: bool = False


@dataclass(frozen=True)
class Listener:
    """A listening TCP socket. container: the name of the container that published the port, where one did."""

    port: int
    address: str
    process: str | None = None
    container: str | None = None
