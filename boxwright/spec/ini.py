"""Hosts, groups and variables of an INI inventory, with their lines; Ansible itself reads the values."""

from __future__ import annotations

import re
from pathlib import Path

from boxwright.spec.places import Definition, Entry
from boxwright.spec.structure import Structure

_SECTION = re.compile(r"\[([^:\]]+)(?::(hosts|vars|children))?\]\s*([#;].*)?$")
_ASSIGNMENT = re.compile(r"(?:^|\s)([A-Za-z_]\w*)\s*=")
_VARIABLE = re.compile(r"\s*([A-Za-z_]\w*)\s*=")


def read_ini(file: Path, text: str) -> Structure:
    """The structure of an INI inventory."""
    structure = Structure()
    group, kind = "ungrouped", "hosts"
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.strip()
        if not content or content[0] in "#;":
            continue
        section = _SECTION.match(content)
        if section:
            group, kind = section[1].strip(), section[2] or "hosts"
            structure.add_group(file, number, group)
        elif content.startswith("["):
            structure.problem(file, number, content[:40], "is not a section", "[group]")
        elif kind == "vars":
            variable = _VARIABLE.match(line)
            if variable:
                definition = Definition(file, {variable[1]: Entry(number)})
                structure.group_vars.append((group, definition))
        elif kind == "children":
            structure.add_group(file, number, content.split("#")[0].strip())
        else:
            _read_host(structure, file, number, content)
    return structure


def _read_host(structure: Structure, file: Path, number: int, content: str) -> None:
    pattern, _, rest = content.partition(" ")
    entries = {name: Entry(number) for name in _ASSIGNMENT.findall(f" {rest}")}
    for name in structure.add_hosts(file, number, pattern):
        structure.host_vars.append((name, Definition(file, entries)))
