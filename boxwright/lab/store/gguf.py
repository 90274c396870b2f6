"""Reading GGUF, the file format of llama.cpp: metadata, and tensors as they lie in the file.

Source of the layout: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

MAGIC, VERSION = b"GGUF", 3
#: struct codes of the metadata's scalar types, by their numbers; 8 is a string and 9 an array.
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
#: Tensor types by number: name, elements in a block, bytes of a block.
TYPES = {0: ("F32", 1, 4), 1: ("F16", 1, 2), 3: ("Q4_1", 32, 20), 8: ("Q8_0", 32, 34)}


class GgufError(ValueError):
    """The file is not a GGUF file of the kind that this reader knows."""


@dataclass(frozen=True)
class Tensor:
    """One tensor. shape: rows first, as PyTorch counts (the file counts the other way round)."""

    name: str
    kind: str
    shape: tuple[int, ...]
    data: memoryview


@dataclass(frozen=True)
class Gguf:
    """A whole file; the tensors' data stay in the file."""

    metadata: dict[str, object]
    tensors: list[Tensor]

    @classmethod
    def read(cls, path: Path) -> Gguf:
        """Read a file. Raises GgufError when it is not GGUF 3 or has a tensor type that is not in TYPES."""
        with path.open("rb") as stream:
            reader = _Reader(memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)))
        if bytes(reader.take(4)) != MAGIC or reader.number("I") != VERSION:
            raise GgufError(f"{path}: not a GGUF file of version {VERSION}")
        count, entries = reader.number("Q"), reader.number("Q")
        metadata = {reader.string(): reader.value(int(reader.number("I"))) for _ in range(entries)}
        headers = [reader.tensor(path) for _ in range(count)]
        alignment = metadata.get("general.alignment", 32)
        start = reader.aligned(alignment if isinstance(alignment, int) else 32)
        return cls(
            metadata,
            [
                Tensor(name, kind, shape, reader.data[start + offset : start + offset + size])
                for name, kind, shape, offset, size in headers
            ],
        )


class _Reader:
    """A place in the file that moves on with what is read."""

    def __init__(self, data: memoryview) -> None:
        self.data, self.place = data, 0

    def take(self, size: int) -> memoryview:
        if self.place + size > len(self.data):
            raise GgufError("the file ends too early")
        self.place += size
        return self.data[self.place - size : self.place]

    def number(self, code: str) -> int:
        return int(struct.unpack(f"<{code}", self.take(struct.calcsize(f"<{code}")))[0])

    def string(self) -> str:
        return str(self.take(self.number("Q")), "utf-8")

    def value(self, kind: int) -> object:
        if kind == 8:
            return self.string()
        if kind == 9:
            inner, count = self.number("I"), self.number("Q")
            if inner in SCALARS:
                form = f"<{count}{SCALARS[inner]}"
                return list(struct.unpack(form, self.take(struct.calcsize(form))))
            return [self.value(inner) for _ in range(count)]
        if kind not in SCALARS:
            raise GgufError(f"unknown type of metadata: {kind}")
        form = f"<{SCALARS[kind]}"
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def tensor(self, path: Path) -> tuple[str, str, tuple[int, ...], int, int]:
        name = self.string()
        sizes = [self.number("Q") for _ in range(self.number("I"))]
        number = self.number("I")
        if number not in TYPES:
            raise GgufError(f"{path}: tensor {name} is of type {number}, which is none of {sorted(TYPES)}")
        kind, block, block_bytes = TYPES[number]
        elements = 1
        for size in sizes:
            elements *= size
        return name, kind, tuple(reversed(sizes)), self.number("Q"), elements // block * block_bytes

    def aligned(self, alignment: int) -> int:
        return -(-self.place // alignment) * alignment
