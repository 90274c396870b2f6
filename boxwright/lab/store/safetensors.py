"""Writing safetensors files. Source of the layout: https://github.com/huggingface/safetensors#format."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from pathlib import Path

#: Bytes of an element, by the format's names of types.
SIZES = {"BF16": 2, "F16": 2, "F32": 4}


@dataclass(frozen=True)
class Weight:
    """One tensor of a file. data: its elements row by row, little-endian, in `dtype` (a key of SIZES)."""

    name: str
    shape: tuple[int, ...]
    data: bytes
    dtype: str = "BF16"

    def __post_init__(self) -> None:
        """Raises ValueError when the data are not as long as the shape says."""
        if len(self.data) != prod(self.shape) * SIZES[self.dtype]:
            raise ValueError(f"{self.name}: {len(self.data)} bytes for {self.dtype} of shape {self.shape}")


def write(path: Path, weights: Iterable[Weight]) -> None:
    """Write a file of weights, sorted by name; the same weights give the same bytes."""
    ordered = sorted(weights, key=lambda weight: weight.name)
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    place = 0
    for weight in ordered:
        header[weight.name] = {
            "dtype": weight.dtype,
            "shape": list(weight.shape),
            "data_offsets": [place, place + len(weight.data)],
        }
        place += len(weight.data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the data begin at a multiple of 8 bytes
    with path.open("wb") as stream:
        stream.write(len(text).to_bytes(8, "little") + text)
        for weight in ordered:
            stream.write(weight.data)
