"""The host-side sources, as files for a package or for a host."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from boxwright.lab.gpu.deb import EPOCH

PAYLOAD = Path(__file__).with_name("payload")
#: Where the hardware's own code lies on a host.
LIBRARY = "/usr/lib/lab-gpu"
#: The start of a 64-bit x86 shared object (gABI, ELF header): ldconfig passes over the file in silence.
ELF_HEADER = (
    b"\x7fELF\x02\x01\x01"
    + bytes(9)
    + (3).to_bytes(2, "little")
    + (62).to_bytes(2, "little")
    + (1).to_bytes(4, "little")
    + bytes(28)
    + (64).to_bytes(2, "little")
    + bytes(10)
)


def modules(parts: Iterable[str]) -> dict[str, bytes]:
    """The Python modules below payload/labgpu of these parts ("." for the package itself), by path."""
    base = PAYLOAD / "labgpu"
    return {
        f"labgpu/{path.relative_to(base)}": path.read_bytes()
        for part in parts
        for path in sorted((base / part).glob("*.py"))
    }


def program(name: str) -> bytes:
    """A program of payload/programs."""
    return (PAYLOAD / "programs" / name).read_bytes()


def command(module: str, function: str, *arguments: str) -> bytes:
    """A program that calls a function of the hardware's own code with these arguments."""
    given = ", ".join(repr(argument) for argument in arguments)
    return (
        f"#!/usr/bin/python3 -ES\nimport sys\n\nsys.path.insert(0, {LIBRARY!r})\n"
        f"from labgpu.{module} import {function}  # noqa: E402\n\nsys.exit({function}({given}))\n"
    ).encode()


def archive(files: Mapping[str, bytes], prefix: bytes = b"") -> bytes:
    """A zip of the files; the same files give the same bytes. prefix: what comes before the zip."""
    buffer = io.BytesIO()
    buffer.write(prefix)
    with zipfile.ZipFile(buffer, "a" if prefix else "w", zipfile.ZIP_DEFLATED) as bundle:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, date_time=_moment())
            info.compress_type, info.external_attr, info.create_system = zipfile.ZIP_DEFLATED, 0o644 << 16, 3
            bundle.writestr(info, files[name])
    return buffer.getvalue()


def _moment() -> tuple[int, int, int, int, int, int]:
    from datetime import UTC, datetime

    moment = datetime.fromtimestamp(EPOCH, UTC)
    return moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second
