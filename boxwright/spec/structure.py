"""Hosts and groups of a YAML inventory: their names, where they stand, and what they give to whom."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from boxwright.spec.documents import Document
from boxwright.spec.places import Definition, entries_of, items, line_of, shown_path
from boxwright.spec.problem import Problem
from boxwright.spec.suggestions import did_you_mean

#: More hosts than one inventory line may stand for.
MOST_HOSTS = 1000
_GROUP = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST = re.compile(rf"(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*")
_RANGE = re.compile(r"\[([^\[\]]*)\]")
_BOUNDS = re.compile(r"(?:(\d*):(\d+)|([a-zA-Z]):([a-zA-Z]))(?::([1-9]\d{0,5}))?")
_SECTIONS = ("hosts", "children", "vars")
_BUILT_IN = ("all", "ungrouped")
_TEXT = "tag:yaml.org,2002:str"
#: What YAML takes a bare word for that is no text, by the end of its tag.
_NO_TEXT = {
    "bool": "true or false",
    "int": "a number",
    "float": "a number",
    "null": "nothing",
    "timestamp": "a date",
}


@dataclass
class Structure:
    """What one inventory file says. hosts, groups: names with the line of their first mention.

    host_vars, group_vars: what the file gives to each, the winning one last.
    """

    hosts: dict[str, int] = field(default_factory=dict)
    groups: dict[str, int] = field(default_factory=dict)
    host_vars: list[tuple[str, Definition]] = field(default_factory=list)
    group_vars: list[tuple[str, Definition]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    #: Whether Ansible must not be given the file (a range of a million hosts would keep it busy for long).
    unusable: bool = False

    def problem(self, file: Path, line: int, name: str, message: str, allowed: str = "") -> None:
        """Record a mistake of the file."""
        self.problems.append(Problem(shown_path(file), line, None, name, "", message, allowed))

    def is_name(self, file: Path, key: yaml.ScalarNode) -> bool:
        """Whether a key is text: YAML takes `off`, `no` and `12` for something else, Ansible for no name."""
        if key.tag == _TEXT:
            return True
        meant, word = _NO_TEXT.get(key.tag.rpartition(":")[2], "no text"), str(key.value)
        message = f"is no name: YAML takes it for {meant}, and Ansible then reads nothing of the file"
        self.problem(file, line_of(key), word, message, f'"{word}", in quotation marks')
        self.unusable = True
        return False

    def add_group(self, file: Path, line: int, name: str) -> None:
        """Note a group and check its name."""
        if name not in self.groups and not _GROUP.fullmatch(name):
            better = re.sub(r"\W", "_", name, flags=re.ASCII)
            self.problem(
                file,
                line,
                name,
                "is no usable group name: letters, digits and _ only, no digit first",
                f"for example {better if _GROUP.fullmatch(better) else '_' + better}",
            )
        self.groups.setdefault(name, line)

    def add_hosts(self, file: Path, line: int, pattern: str) -> list[str]:
        """Note the hosts that a name or range stands for, check the names, and give them."""
        names, wrong = expand(pattern)
        if wrong:
            self.problem(file, line, pattern[:80], wrong)
            self.unusable = True
            return []
        for name in names:
            reason = host_name_problem(name)
            if reason and name not in self.hosts:
                self.problem(file, line, name, reason[0], reason[1])
            self.hosts.setdefault(name, line)
        return names


def host_name_problem(name: str) -> tuple[str, str] | None:
    """What is wrong with a host's name and what to write, or None when it is a host name or an IP address."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        if _HOST.fullmatch(name):
            return None
    else:
        return None
    if "_" in name and _HOST.fullmatch(name.replace("_", "-")):
        return "is not a host name: it may hold no underscore", name.replace("_", "-")
    return "is not a host name: letters, digits, - and . only", "box1, box1.example.org, 192.0.2.7"


def expand(pattern: str) -> tuple[list[str], str]:
    """The hosts that `lab[1:20]`, `box1` or `box1:22` stands for, and what is wrong with it (or nothing)."""
    pattern = _without_port(pattern)
    found = _RANGE.search(pattern)
    if not found or _is_address(pattern):
        return [pattern], ""
    bounds = _BOUNDS.fullmatch(found[1])
    if not bounds:
        return [], f"has a range that is none: [{found[1][:40]}] is not like [1:20] or [a:f]"
    if bounds[1] is not None:
        if max(len(bounds[1]), len(bounds[2])) > 9:
            return [], f"stands for too many hosts (at most {MOST_HOSTS})"
        width = len(bounds[1]) if bounds[1].startswith("0") else 0
        values = range(int(bounds[1] or 0), int(bounds[2]) + 1, int(bounds[5] or 1))
        if len(values) > MOST_HOSTS:
            return [], f"stands for {len(values)} hosts (at most {MOST_HOSTS})"
        middle = [str(value).zfill(width) for value in values]
    else:
        middle = [chr(value) for value in range(ord(bounds[3]), ord(bounds[4]) + 1, int(bounds[5] or 1))]
    if not middle:
        return [], f"has an empty range: [{found[1]}]"
    names: list[str] = []
    for part in middle:
        inner, wrong = expand(pattern[: found.start()] + part + pattern[found.end() :])
        if wrong or len(names) + len(inner) > MOST_HOSTS:
            return [], wrong or f"stands for more than {MOST_HOSTS} hosts"
        names += inner
    return names, ""


def read_groups(document: Document) -> Structure:
    """The structure of a YAML inventory, in the order in which Ansible reads it (later values win)."""
    structure = Structure()
    root = document.root
    if not isinstance(root, yaml.MappingNode):
        if root is not None:
            structure.problem(document.file, line_of(root), "", "must be a mapping of groups")
        return structure
    names = {str(key.value) for key, _ in items(root)}
    if "plugin" in names:
        return structure
    if "$schema" in names:
        structure.problem(
            document.file,
            line_of(root),
            "",
            "is a JSON Schema, not an inventory",
            "the directory of one inventory, like inventory/local",
        )
        structure.unusable = True
        return structure
    for key, value in items(root):
        _read_group(structure, document, key, value)
    return structure


def _read_group(structure: Structure, document: Document, key: yaml.ScalarNode, node: yaml.Node) -> None:
    name, file = str(key.value), document.file
    if not structure.is_name(file, key):
        return
    structure.add_group(file, line_of(key), name)
    sections = dict(_sections(structure, document, key, node))
    variables = sections.get("vars")
    if variables is not None:
        structure.group_vars.append((name, Definition(file, entries_of(variables), document.encrypted)))
    for child, inner in items(sections.get("children")):
        _read_group(structure, document, child, inner)
    for host, inner in items(sections.get("hosts")):
        if not structure.is_name(file, host):
            continue
        names = structure.add_hosts(file, line_of(host), str(host.value))
        if not _is_empty(inner) and not isinstance(inner, yaml.MappingNode):
            structure.problem(file, line_of(inner), str(host.value), "must be a mapping of variables")
            continue
        definition = Definition(file, entries_of(inner), document.encrypted)
        structure.host_vars += [(name, definition) for name in names]


def _sections(
    structure: Structure, document: Document, key: yaml.ScalarNode, node: yaml.Node
) -> Iterator[tuple[str, yaml.Node]]:
    """The group's hosts, children and vars; everything else in it is a mistake."""
    name = str(key.value)
    if _is_empty(node):
        return
    if not isinstance(node, yaml.MappingNode):
        structure.problem(document.file, line_of(node), name, "must be a mapping of hosts, children or vars")
        return
    for section, value in items(node):
        if section.value not in _SECTIONS:
            structure.problem(
                document.file,
                line_of(section),
                f"{name}.{section.value}",
                "is neither hosts, children nor vars",
                did_you_mean(str(section.value), _SECTIONS),
            )
        elif _is_empty(value):
            continue
        elif not isinstance(value, yaml.MappingNode):
            structure.problem(
                document.file,
                line_of(section),
                f"{name}.{section.value}",
                "must be a mapping, not a list or a single value",
                f"{section.value}: {{name: …}}",
            )
        else:
            yield str(section.value), value


def name_clashes(structures: list[tuple[Path, Structure]]) -> Iterator[Problem]:
    """Names that are a host's and a group's at once: Ansible would take either for the other."""
    groups: dict[str, tuple[Path, int]] = {}
    for file, structure in structures:
        for name, line in structure.groups.items():
            groups.setdefault(name, (file, line))
    for file, structure in structures:
        for name, line in structure.hosts.items():
            if name in groups:
                other_file, other = groups[name]
                yield Problem(
                    shown_path(file),
                    line,
                    None,
                    name,
                    "",
                    f"is a host and a group at once (the group: {shown_path(other_file)}:{other})",
                    "two different names",
                )
            elif name in _BUILT_IN:
                yield Problem(
                    shown_path(file), line, None, name, "", "is Ansible's own group, no name for a host"
                )


def _is_empty(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null")


def _without_port(pattern: str) -> str:
    """`box1:2222` without the port that Ansible takes from it; ranges and IPv6 addresses are left whole."""
    head, colon, port = pattern.rpartition(":")
    if not colon or not port.isdigit() or (":" in _RANGE.sub("", head) and not head.endswith("]")):
        return pattern
    if head.count("[") != head.count("]"):
        return pattern
    return head[1:-1] if head.startswith("[") and head.endswith("]") and ":" in head else head


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
