"""The files of an inventory: which there are, and what each of them gives to which host or group."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import yaml

from boxwright.spec.documents import YAML_SUFFIXES, Document, failed, parse
from boxwright.spec.ini import read_ini
from boxwright.spec.places import Definition, entries_of, line_of, shown_path
from boxwright.spec.problem import Problem
from boxwright.spec.structure import Structure, read_groups

#: Reads a file as text and says whether it was encrypted; raises OSError, UnicodeDecodeError or LockedVault.
ReadText = Callable[[Path], tuple[str, bool]]

_VARS_DIRECTORIES = ("group_vars", "host_vars")
_IGNORED_NAMES = ("group_vars", "host_vars", "vars_plugins")
#: What Ansible leaves out when a directory is the inventory (its setting INVENTORY_IGNORE_EXTS, by default).
_IGNORED_SUFFIXES = (
    ".pyc",
    ".pyo",
    ".swp",
    ".bak",
    "~",
    ".rpm",
    ".md",
    ".txt",
    ".rst",
    ".orig",
    ".cfg",
    ".retry",
)
_YAML_START = re.compile(r"^(---|[\w\"'-]+\s*:\s*(#.*|\{.*|&\w+.*)?$|\{)")


VAULT_WAY_OUT = (
    "name a file with its password, or a program that prints it: ANSIBLE_VAULT_PASSWORD_FILE=FILE ./invoke …"
)


class LockedVault(Exception):
    """A file is encrypted and cannot be decrypted; the message says why."""


@dataclass
class Source:
    """One file that lists hosts and groups. program: Ansible runs it; refused: it found no sense in it."""

    file: Path
    document: Document | None = None
    structure: Structure = field(default_factory=Structure)
    program: bool = False
    refused: bool = False

    @property
    def broken(self) -> bool:
        """Whether Ansible cannot be given this file."""
        return self.refused or self.structure.unusable or (self.document is not None and self.document.broken)

    @property
    def problems(self) -> list[Problem]:
        """What is wrong in it."""
        return [*(self.document.problems if self.document else ()), *self.structure.problems]


@dataclass
class VarsFile:
    """One file of group_vars or host_vars. base: where these lie; owner: the name of its group or host."""

    base: Path
    file: Path
    kind: str
    owner: str
    document: Document

    @cached_property
    def definition(self) -> Definition:
        """The variables that it gives."""
        return Definition(self.file, entries_of(self.document.root), self.document.encrypted)


def source_files(path: Path, above: frozenset[Path] = frozenset()) -> list[Path]:
    """The files that Ansible takes hosts from, in its order, for an inventory of one file or a directory.

    above: the directories that it lies in; a link that leads back to one of them is not followed.
    """
    if not path.is_dir():
        return [path]
    if path.resolve() in above:
        return []
    above = above | {path.resolve()}
    found: list[Path] = []
    for entry in sorted(path.iterdir()):
        ignored = entry.name.startswith(".") or entry.name in _IGNORED_NAMES
        if not ignored and not entry.name.endswith(_IGNORED_SUFFIXES):
            found += source_files(entry, above)
    return found


def vars_files(base: Path, read_text: ReadText) -> tuple[list[VarsFile], list[Problem]]:
    """Every file of group_vars and host_vars in a directory, and a problem for each that is never read.

    Ansible takes, for one name, the first of NAME, NAME.yml, NAME.yaml and NAME.json, and passes over the
    others.
    """
    found: list[VarsFile] = []
    problems: list[Problem] = []
    for kind in _VARS_DIRECTORIES:
        directory = base / kind
        if directory.is_dir() and directory.resolve() == base.resolve():
            problems.append(
                Problem(shown_path(directory), None, None, "", "", "is a link to where it lies itself")
            )
            continue
        taken: dict[str, Path] = {}
        for entry in sorted(directory.iterdir(), key=_rank) if directory.is_dir() else []:
            if entry.name.startswith(".") or entry.name.endswith("~"):
                continue
            owner = entry.stem if entry.suffix in YAML_SUFFIXES else entry.name
            first = taken.setdefault(owner, entry)
            if first is not entry:
                problems.append(
                    Problem(shown_path(entry), None, None, "", "", f"is never read: {first.name} is")
                )
                continue
            files = _files_below(entry) if entry.is_dir() else [entry]
            found += [VarsFile(base, file, kind, owner, _vars_document(file, read_text)) for file in files]
    return found, problems


def _rank(entry: Path) -> tuple[str, int]:
    suffix = entry.suffix if entry.suffix in YAML_SUFFIXES else ""
    return entry.name.removesuffix(suffix), ("", *YAML_SUFFIXES).index(suffix)


def _files_below(directory: Path, above: frozenset[Path] = frozenset()) -> Iterator[Path]:
    """The files of a directory and those in it; a link that leads back to one above is not followed."""
    above = above | {directory.resolve()}
    for entry in sorted(directory.iterdir()):
        if entry.name.startswith(".") or entry.name.endswith("~"):
            continue
        if entry.is_dir() and not entry.suffix:
            if entry.resolve() not in above:
                yield from _files_below(entry, above)
        elif entry.is_file() and entry.suffix in (*YAML_SUFFIXES, ""):
            yield entry


def read_source(file: Path, read_text: ReadText) -> Source:
    """Read one file that lists hosts."""
    try:
        mode = file.stat().st_mode
        if mode & stat.S_IXUSR and stat.S_ISREG(mode) and _begins_with_interpreter(file):
            return Source(file, program=True)
        text, encrypted = read_text(file)
    except (OSError, UnicodeDecodeError, LockedVault) as error:
        return Source(file, _unreadable(file, error))
    if file.suffix not in YAML_SUFFIXES and not _looks_like_yaml(text):
        return Source(file, structure=read_ini(file, text))
    document = parse(file, text, encrypted=encrypted)
    if document.broken or document.root is None:
        return Source(file, document)
    return Source(file, document, read_groups(document))


def _begins_with_interpreter(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(2) == b"#!"


def _looks_like_yaml(text: str) -> bool:
    lines = (line for line in text.splitlines() if line.strip() and line.lstrip()[0] not in "#;")
    return bool(_YAML_START.match(next(lines, "")))


def _vars_document(file: Path, read_text: ReadText) -> Document:
    try:
        text, encrypted = read_text(file)
    except (OSError, UnicodeDecodeError, LockedVault) as error:
        return _unreadable(file, error)
    document = parse(file, text, encrypted=encrypted)
    root = document.root
    if document.broken or root is None or isinstance(root, yaml.MappingNode):
        return document
    if isinstance(root, yaml.ScalarNode) and root.tag.endswith(":null"):
        return document
    kind = "list" if isinstance(root, yaml.SequenceNode) else "single value"
    return failed(file, line_of(root), f"must be a mapping of variables, not a {kind}")


def _unreadable(file: Path, error: Exception) -> Document:
    if isinstance(error, LockedVault):
        return failed(file, 1, f"is encrypted, and {error}", VAULT_WAY_OUT)
    if isinstance(error, UnicodeDecodeError):
        line = error.object[: error.start].count(b"\n") + 1
        return failed(file, line, f"is not UTF-8 text (byte 0x{error.object[error.start]:02x})")
    return failed(file, None, f"cannot be read: {getattr(error, 'strerror', None) or error}")
