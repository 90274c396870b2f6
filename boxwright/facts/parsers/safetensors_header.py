"""The header of a safetensors file: eight bytes of length, then JSON of every tensor.

Format: https://huggingface.co/docs/safetensors (N as little-endian u64, N bytes of JSON).
"""

from __future__ import annotations

import json
import re
import struct
from typing import Any, Dict, List, Optional

#: The format's own limit of a header, in bytes.
LONGEST_HEADER = 100_000_000
#: The bytes that precede the header.
LENGTH_BYTES = 8

_NUMBERS = re.compile(r"(?<=\.)\d+(?=\.|$)")


def header_length(start: bytes) -> Optional[int]:
    """Bytes of the JSON header, from the first eight bytes of a file; None when it is no safetensors file."""
    if len(start) < LENGTH_BYTES:
        return None
    length = int(struct.unpack("<Q", start[:LENGTH_BYTES])[0])
    return length if 2 <= length <= LONGEST_HEADER else None


def groups(header: bytes) -> List[Dict[str, Any]]:
    """Tensors by name, numbers in it as `*`: name, count, bytes, dtype. Raises ValueError for other texts."""
    tensors = json.loads(header.decode("utf-8"))
    if not isinstance(tensors, dict):
        raise ValueError("the header is no object")
    found: Dict[str, Dict[str, Any]] = {}
    for name, tensor in tensors.items():
        if name == "__metadata__":
            continue
        try:
            begin, end = tensor["data_offsets"]
            size, dtype = int(end) - int(begin), str(tensor["dtype"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError("tensor %s has no size" % name) from error
        group = found.setdefault(_NUMBERS.sub("*", name), {"count": 0, "bytes": 0, "dtype": dtype})
        group["count"] += 1
        group["bytes"] += size
    return [dict(group, name=name) for name, group in sorted(found.items())]


def merge(parts: List[List[Dict[str, Any]]]) -> List[Dict[str, Any]]:
    """The groups of all files of a model as one list."""
    found: Dict[str, Dict[str, Any]] = {}
    for part in parts:
        for group in part:
            same = found.setdefault(group["name"], dict(group, count=0, bytes=0))
            same["count"] += group["count"]
            same["bytes"] += group["bytes"]
    return [found[name] for name in sorted(found)]
