"""The header of a safetensors file: eight bytes of length, then JSON of every tensor.

Format: https://huggingface.co/docs/safetensors (N as little-endian u64, N bytes of JSON).
"""

from __future__ import annotations

import json
import re
import struct
from typing import Any, Dict, List, Optional, Tuple

#: The format's own limit of a header, in bytes.
LONGEST_HEADER = 100_000_000
#: The bytes that precede the header.
LENGTH_BYTES = 8
#: Kinds of tensors, and bytes of one: nothing real has more.
MOST_GROUPS, LARGEST = 5000, 1 << 50
#: How a large file looks that was cloned without its content.
POINTER = b"version https://git-lfs"

_NUMBERS = re.compile(r"(?<=\.)\d+(?=\.|$)")


def header_length(start: bytes) -> Optional[int]:
    """Bytes of the JSON header, from the first eight bytes of a file; None when it is no safetensors file."""
    if len(start) < LENGTH_BYTES:
        return None
    length = int(struct.unpack("<Q", start[:LENGTH_BYTES])[0])
    return length if 2 <= length <= LONGEST_HEADER else None


def header_end(start: bytes, size: int) -> int:
    """Where the header of a file of so many bytes ends. start: the file's first bytes.

    Raises ValueError, as the end of a sentence about the file, when it is no safetensors file.
    """
    if start.startswith(POINTER):
        raise ValueError("is a Git LFS pointer, not the weights: run git lfs pull")
    length = header_length(start)
    if length is None:
        raise ValueError("is no safetensors file%s" % ("" if size else " (it is empty)"))
    end = LENGTH_BYTES + length
    if end > size:
        raise ValueError("has %d bytes where its header alone has %d: it is cut off" % (size, end))
    return end


def groups(header: bytes, data_bytes: Optional[int] = None) -> List[Dict[str, Any]]:
    """Tensors by name, numbers in it as `*`: name, count, bytes, dtype.

    data_bytes: of the file after its header, where known. Raises ValueError, as the end of a sentence, for a
    text that is none, and where the tensors need more bytes than there are.
    """
    try:
        tensors = json.loads(header.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError("has a header that is not JSON") from error
    if not isinstance(tensors, dict):
        raise ValueError("has a header that is no object")
    found: Dict[str, Dict[str, Any]] = {}
    last = 0
    for name, tensor in tensors.items():
        if name == "__metadata__":
            continue
        begin, end = _span(name, tensor)
        last = max(last, end)
        group = found.setdefault(
            _NUMBERS.sub("*", name), {"count": 0, "bytes": 0, "dtype": str(tensor.get("dtype"))[:16]}
        )
        group["count"] += 1
        group["bytes"] += end - begin
        if len(found) > MOST_GROUPS:
            raise ValueError("names more kinds of tensors than any model has")
    if data_bytes is not None and last > data_bytes:
        raise ValueError("lacks %d of the bytes that its header names: it is cut off" % (last - data_bytes))
    return [dict(group, name=name) for name, group in sorted(found.items())]


def _span(name: str, tensor: Any) -> Tuple[int, int]:
    """First and last byte of a tensor, counted from the end of the header."""
    offsets = tensor.get("data_offsets") if isinstance(tensor, dict) else None
    if (
        not isinstance(offsets, list)
        or len(offsets) != 2
        or not all(isinstance(one, int) and not isinstance(one, bool) for one in offsets)
        or not 0 <= offsets[0] <= offsets[1] <= LARGEST
    ):
        raise ValueError("names a tensor without a size, %s" % name[:60])
    return offsets[0], offsets[1]


def merge(parts: List[List[Dict[str, Any]]]) -> List[Dict[str, Any]]:
    """The groups of all files of a model as one list. Raises ValueError for more kinds than any model has."""
    found: Dict[str, Dict[str, Any]] = {}
    for part in parts:
        for group in part:
            same = found.setdefault(group["name"], dict(group, count=0, bytes=0))
            same["count"] += group["count"]
            same["bytes"] += group["bytes"]
    if len(found) > MOST_GROUPS:
        raise ValueError("there are more kinds of tensors than any model has")
    return [found[name] for name in sorted(found)]
