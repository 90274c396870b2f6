"""Hosts, groups and variables of an INI inventory, with their lines; Ansible itself reads the values."""

from __future__ import annotations

import re
import shlex
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
            if "=" not in content:
                # Ansible would stop at it, and show what may be a secret.
                structure.problem(file, number, "", "is no variable", "NAME=value")
                structure.unusable = True
            elif variable:
                definition = Definition(file, {variable[1]: Entry(number)})
                structure.group_vars.append((group, definition))
        elif kind == "children":
            structure.add_group(file, number, content.split("#")[0].strip())
        else:
            _read_host(structure, file, number, content)
    return structure


def _read_host(structure: Structure, file: Path, number: int, content: str) -> None:
    pattern, _, rest = content.partition(" ")
    wrong = _unreadable(content)
    if wrong:
        structure.problem(file, number, "", wrong, "box1 ansible_host=192.0.2.7 ansible_user=me")
        structure.unusable = True
        return
    entries = {name: Entry(number) for name in _ASSIGNMENT.findall(f" {rest}")}
    for name in structure.add_hosts(file, number, pattern):
        structure.host_vars.append((name, Definition(file, entries)))


def _unreadable(content: str) -> str:
    """Why Ansible stops at a host's line, or nothing. Its own message shows the line, passwords and all."""
    try:
        words = shlex.split(content, comments=True)
    except ValueError:
        return "has a quotation mark that is not closed"
    if any("=" not in word for word in words[1:]):
        return "has a word that is no NAME=value behind the host; a value with spaces needs quotation marks"
    return ""
