"""A model's checkpoint in a directory: whether it is whole, and the tensors it holds."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, NamedTuple, Tuple

from ansible.module_utils import safetensors_header, weight_files


class CheckpointError(Exception):
    """What is wrong with a checkpoint, naming the file."""


class Tensor(NamedTuple):
    """One tensor. size: bytes."""

    dtype: str
    shape: Tuple[int, ...]
    size: int


def config(directory: str) -> Dict[str, Any]:
    """The model's configuration. Raises CheckpointError."""
    return _json(os.path.join(directory, "config.json"))


def weights(directory: str) -> List[str]:
    """Names of the weights files: those that the index lists, else all. Raises CheckpointError."""
    try:
        there = sorted(name for name in os.listdir(directory) if name.endswith(weight_files.WEIGHTS))
    except FileNotFoundError:
        raise CheckpointError("%s does not exist" % directory) from None
    except NotADirectoryError:
        raise CheckpointError("%s is not a directory" % directory) from None
    except PermissionError:
        raise CheckpointError("%s cannot be read" % directory) from None
    index = os.path.join(directory, weight_files.INDEX)
    if os.path.exists(index):
        with open(index, encoding="utf-8", errors="replace") as stream:
            text = stream.read()
        try:
            missing = weight_files.missing_shards(text, there)
        except ValueError as error:
            raise CheckpointError("%s: %s" % (directory, error)) from error
        if missing:
            raise CheckpointError("%s lacks %s, which its index lists" % (directory, ", ".join(missing)))
        there = sorted(set(_json(index)["weight_map"].values()))
    if not there:
        raise CheckpointError("%s has no weights in the safetensors format" % directory)
    return there


def tensors(directory: str) -> Dict[str, Tensor]:
    """Every tensor by name; each file must be as long as its header says. Raises CheckpointError."""
    found: Dict[str, Tensor] = {}
    for name in weights(directory):
        found.update(read_tensors(os.path.join(directory, name)))
    return found


def read_tensors(path: str) -> Dict[str, Tensor]:
    """The tensors of one file, from its header. Raises CheckpointError."""
    size = os.path.getsize(path)
    with open(path, "rb") as stream:
        length = safetensors_header.header_length(stream.read(safetensors_header.LENGTH_BYTES))
        if length is None:
            raise CheckpointError(
                "%s is not a safetensors file%s" % (path, " (it is empty)" if not size else "")
            )
        header = stream.read(length)
    try:
        entries = {name: entry for name, entry in json.loads(header).items() if name != "__metadata__"}
        found = {
            str(name): Tensor(
                str(entry["dtype"]),
                tuple(int(side) for side in entry["shape"]),
                int(entry["data_offsets"][1]) - int(entry["data_offsets"][0]),
            )
            for name, entry in entries.items()
        }
        end = max([int(entry["data_offsets"][1]) for entry in entries.values()] or [0])
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise CheckpointError("%s has a header that cannot be read" % path) from error
    whole = safetensors_header.LENGTH_BYTES + length + end
    if size != whole:
        raise CheckpointError("%s has %d bytes where its header says %d" % (path, size, whole))
    return found


def _json(path: str) -> Dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as stream:
            found = json.load(stream)
    except FileNotFoundError:
        raise CheckpointError("%s is missing" % path) from None
    except (ValueError, OSError) as error:
        raise CheckpointError("%s cannot be read: %s" % (path, error)) from error
    if not isinstance(found, dict):
        raise CheckpointError("%s is not a JSON object" % path)
    return found
