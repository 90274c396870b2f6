"""Texts that systemd reads: unit files by their settings, files of variables by their names."""

from __future__ import annotations

import re
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: What a backslash takes its meaning from between double quotes.
_ESCAPED = '"\\`$'


class Setting(NamedTuple):
    """One setting of a unit file. line: where it begins, from 1; value: its continued lines as one."""

    line: int
    section: str
    name: str
    value: str


def settings(text: str) -> Iterator[Setting]:
    """The settings of a unit file in order (systemd.syntax(7)), without comments between their lines."""
    section, begun = "", 0
    parts: List[str] = []
    for number, line in enumerate([*text.split("\n"), ""], 1):
        bare = line.lstrip()
        if bare.startswith(("#", ";")) or (not bare and not parts):
            continue
        begun = begun if parts else number
        if (len(bare) - len(bare.rstrip("\\"))) % 2:
            parts.append(bare[:-1])
            continue
        whole = " ".join([*parts, bare]).strip()
        parts = []
        name, equals, value = whole.partition("=")
        if whole.startswith("[") and whole.endswith("]"):
            section = whole[1:-1]
        elif equals:
            yield Setting(begun, section, name.strip(), value.strip())


def variables(text: str) -> Dict[str, str]:
    """The variables of a file (systemd.exec(5), EnvironmentFile): the last of a name counts."""
    return dict(_Variables(text).all())


class _Variables:
    """Reads the file from left to right, a character at a time, as values may go over lines."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def take(self) -> str:
        """The next character; "" at the end."""
        self.at += 1
        return self.text[self.at - 1 : self.at]

    def all(self) -> Iterator[Tuple[str, str]]:
        """Each name with its value."""
        while self.at < len(self.text):
            begin = self.text[self.at]
            if begin.isspace():
                self.at += 1
            elif begin in "#;":
                self.at = (self.text + "\n").index("\n", self.at)
            else:
                name, value = self.name(), self.value()
                if name is not None:
                    yield name, value

    def name(self) -> Optional[str]:
        """What stands before the equals sign; None for what is no name."""
        end = self.at
        while end < len(self.text) and self.text[end] not in "=\n":
            end += 1
        name = self.text[self.at : end].strip()
        whole = self.text[end : end + 1] == "="
        self.at = end + 1 if whole else end
        return name if whole and _NAME.fullmatch(name) else None

    def value(self) -> str:
        """To the end of the line that is not within quotes; quotes mean something at the beginning only."""
        found, kept, plain = "", 0, False
        while True:
            character = self.take()
            if character in ("", "\n"):
                return found[:kept]
            if not plain and character in "\"'":
                found += self.quoted(character)
            elif character == "\\":
                plain, character = True, self.take()
                found += character if character != "\n" else ""
            elif plain or not character.isspace():
                plain = True
                found += character
                if character.isspace():
                    continue
            kept = len(found)

    def quoted(self, quote: str) -> str:
        """To the closing quote."""
        found = ""
        while self.at < len(self.text):
            character = self.take()
            if character == quote:
                break
            if character == "\\" and quote == '"':
                character = self.take()
                if character == "\n":
                    continue
                found += character if character in _ESCAPED else "\\" + character
                continue
            found += character
        return found
