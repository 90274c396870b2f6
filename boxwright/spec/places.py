"""Where a value stands: file and line, found by walking the YAML as it was composed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

MERGE_TAG = "tag:yaml.org,2002:merge"
_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+|[\[\]])")


@dataclass(frozen=True)
class Location:
    """A place in a file. line counts from 1. encrypted: the whole file is a vault, its values are secret."""

    file: Path
    line: int
    encrypted: bool = False

    def __str__(self) -> str:
        return f"{shown_path(self.file)}:{self.line}"


@dataclass(frozen=True)
class Entry:
    """One variable as a file defines it. node: its value in YAML, None in other formats."""

    line: int
    node: yaml.Node | None = None


@dataclass(frozen=True)
class Definition:
    """Variables that one mapping of one file gives to a host or a group."""

    file: Path
    entries: Mapping[str, Entry]
    encrypted: bool = False

    def location(self, variable: str, steps: str = "") -> Location:
        """Where `variable` stands, or what lies in it at `steps` (`[0].image`), or the nearest thing above.

        Raises KeyError when the mapping does not define the variable.
        """
        entry = self.entries[variable]
        line = entry.line if entry.node is None else _line_at(entry.node, _tokens(steps), entry.line)
        return Location(self.file, line, self.encrypted)


def split(path: str) -> tuple[str, str]:
    """`box_deployments[0].image` as the variable's name and the steps inside it."""
    name = re.split(r"[.\[]", path, maxsplit=1)[0]
    return name, path[len(name) :]


def shown_path(path: Path) -> str:
    """A path as a person sees it: relative to the working directory when it lies under it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def entries_of(node: yaml.Node | None) -> dict[str, Entry]:
    """The variables of a mapping, those merged in with `<<` too, each with the line of its key."""
    return {str(key.value): Entry(line_of(key), value) for key, value in items(node)}


def items(node: yaml.Node | None) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
    """Keys and values of a mapping node; what is merged in comes first, so that own keys win."""
    if not isinstance(node, yaml.MappingNode):
        return
    for key, value in node.value:
        if key.tag == MERGE_TAG:
            sources = value.value if isinstance(value, yaml.SequenceNode) else [value]
            for source in reversed(sources):
                yield from items(source)
    for key, value in node.value:
        if key.tag != MERGE_TAG and isinstance(key, yaml.ScalarNode):
            yield key, value


def line_of(node: yaml.Node) -> int:
    """The line on which a node starts, from 1."""
    return int(node.start_mark.line) + 1


def _tokens(steps: str) -> list[str | int]:
    return [int(index) if index else name for index, name in _STEP.findall(steps)]


def _line_at(node: yaml.Node, steps: list[str | int], line: int) -> int:
    if not steps:
        return line
    first = steps[0]
    if isinstance(node, yaml.SequenceNode) and isinstance(first, int) and first < len(node.value):
        item = node.value[first]
        return _line_at(item, steps[1:], line_of(item))
    if isinstance(node, yaml.MappingNode):
        known = {str(key.value): (key, value) for key, value in items(node)}
        # A key may hold dots itself: the longest one that is there is meant.
        for length in range(len(steps), 0, -1):
            name = ".".join(str(step) for step in steps[:length])
            if name in known:
                key, value = known[name]
                return _line_at(value, steps[length:], line_of(key))
    return line
