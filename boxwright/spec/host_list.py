"""Adding a host to a hosts.yml that a person wrote: by text, so that comments and order stay.

What was written is read again and compared with what was there before: nothing else may have changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from boxwright.errors import UserError
from boxwright.spec.documents import VAULT_HEADER, parse
from boxwright.spec.places import MERGE_TAG, shown_path
from boxwright.spec.problem import SpecErrors
from boxwright.spec.yaml_text import flow

#: The beginning of a list that did not exist.
_HEAD = "# Your boxes. What each is and serves: host_vars/NAME.yml.\n---\n"
#: Keys of a file that describes where hosts come from, instead of listing them.
_NOT_A_LIST = ("plugin", "$schema")


def extended(file: Path, text: str, name: str, variables: Mapping[str, object]) -> str:
    """The text of hosts.yml with one more host under `all`.

    file: for messages only. name: a host's name. variables: by which it is reached.
    Raises UserError where the file's form does not let a line be added without touching what is there.
    """
    line = f"{flow(name)}: {flow(variables)}"
    if text.startswith(VAULT_HEADER):
        raise _refused(file, "it is encrypted", line)
    before = parse(file, text)
    if before.broken:
        raise SpecErrors(before.problems)
    if not text:
        return f"{_HEAD}all:\n  hosts:\n    {line}\n"
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines(keepends=True)
    at, added = _place(file, before.root, line) or (len(lines), ["all:", "  hosts:", f"    {line}"])
    if at and not lines[at - 1].endswith(("\n", "\r")):
        lines[at - 1] += newline
    lines[at:at] = [part + newline for part in added]
    made = "".join(lines)
    after = parse(file, made)
    if after.broken or not _only_added(before.root, after.root, name):
        raise _refused(file, "a line cannot be added to its form safely", line)
    return made


def _place(file: Path, root: yaml.Node | None, line: str) -> tuple[int, list[str]] | None:
    """Number of lines before the new ones, and these; None for a new group `all` at the end."""
    if root is None or _is_null(root):
        return None
    if not isinstance(root, yaml.MappingNode) or root.flow_style:
        raise _refused(file, "it is no list of groups in block form", line)
    if any(_key(key) in _NOT_A_LIST for key, _ in root.value):
        raise _refused(file, "it says where hosts come from instead of listing them", line)
    group = _child(root, "all")
    if group is None:
        return None
    key, value = group
    indent = key.start_mark.column
    if _is_null(value):
        return key.end_mark.line + 1, [" " * (indent + 2) + "hosts:", " " * (indent + 4) + line]
    if not isinstance(value, yaml.MappingNode) or value.flow_style or not value.value:
        raise _refused(file, "its group `all` is not in block form", line)
    first = value.value[0][0].start_mark
    hosts = _child(value, "hosts")
    if hosts is None:
        return first.line, [" " * first.column + "hosts:", " " * (first.column + 2) + line]
    key, value = hosts
    if _is_null(value):
        return key.end_mark.line + 1, [" " * (key.start_mark.column + 2) + line]
    if not isinstance(value, yaml.MappingNode) or value.flow_style or not value.value:
        raise _refused(file, "its hosts are not in block form", line)
    return _last_line(value) + 1, [" " * value.value[0][0].start_mark.column + line]


def _last_line(node: yaml.Node) -> int:
    """The last line of a node's own text, from 0; what an alias stands for is elsewhere, above it."""
    if isinstance(node, yaml.MappingNode) and not node.flow_style:
        return max(max(int(key.end_mark.line), _last_line(value)) for key, value in node.value)
    if isinstance(node, yaml.SequenceNode) and not node.flow_style and node.value:
        return max(_last_line(item) for item in node.value)
    ends_below = isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")
    return int(node.end_mark.line) - (1 if ends_below else 0)


def _child(node: yaml.MappingNode, name: str) -> tuple[yaml.Node, yaml.Node] | None:
    return next(((key, value) for key, value in node.value if _key(key) == name), None)


def _key(node: yaml.Node) -> str | None:
    return str(node.value) if isinstance(node, yaml.ScalarNode) and node.tag != MERGE_TAG else None


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null")


def _only_added(before: yaml.Node | None, after: yaml.Node | None, name: str) -> bool:
    """Whether the second says what the first says, and one more host of `all`."""
    rest, was = _plain(after), _plain(before)
    hosts = _inner(rest, "all", "hosts")
    if hosts is None or not hosts or hosts[-1][0] != name:
        # A new section `hosts` stands first in its group, with the new host alone.
        return False
    hosts.pop()
    return bool(_pruned(rest) == _pruned(was))


def _plain(node: yaml.Node | None) -> Any:
    """A node as lists: pairs of a mapping in their order, items of a sequence, tag and text of a scalar."""
    if isinstance(node, yaml.MappingNode):
        pairs = []
        for key, value in node.value:
            name = _key(key)
            pairs.append((name if name is not None else _plain(key), _plain(value)))
        return pairs
    if isinstance(node, yaml.SequenceNode):
        return ("list", node.tag, [_plain(item) for item in node.value])
    return None if node is None or _is_null(node) else (node.tag, node.value)


def _inner(plain: Any, *names: str) -> Any:
    for name in names:
        plain = (
            next((value for key, value in plain if key == name), None) if isinstance(plain, list) else None
        )
    return plain if isinstance(plain, list) else None


def _pruned(plain: Any) -> Any:
    """The groups without an empty `hosts` of `all`, and without an empty `all`."""
    if not isinstance(plain, list):
        return []
    kept = []
    for key, value in plain:
        if key == "all" and isinstance(value, list):
            value = [(name, inner) for name, inner in value if not (name == "hosts" and not inner)]
        if key != "all" or value:
            kept.append((key, value))
    return kept


def _refused(file: Path, why: str, line: str) -> UserError:
    ways: Sequence[str] = (
        f"add this line under all: hosts: by hand: {line}",
        "--inventory DIRECTORY with an inventory of its own",
    )
    return UserError(f"{shown_path(file)} cannot be extended: {why}", ways_out=tuple(ways))
