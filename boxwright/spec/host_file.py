"""A host's file as commented YAML: values with the reason for each, and settings that are only offered.

The comments are data (host_file.yml). What is filled into them comes from a host, so it is taken for hostile:
it stays on its line, in its comment.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from boxwright.spec.yaml_text import flow
from boxwright.texts import printable

_WIDTH = 112
#: What a host says of itself is cut at this length.
_LONGEST_WORD = 200


@dataclass(frozen=True)
class Setting:
    """One line of the file. comment: above it, empty for none. offered: it stands there commented out."""

    name: str
    value: object
    comment: str = ""
    offered: bool = False


@dataclass(frozen=True)
class HostFile:
    """A file. box: variables of the box; deployment: keys of its one deployment. schema: for editors."""

    head: str
    box: Sequence[Setting]
    deployment: Sequence[Setting]
    notes: Sequence[str] = ()
    schema: str = ""

    def text(self) -> str:
        """The YAML."""
        lines = [f"# yaml-language-server: $schema={printable(self.schema)}"] if self.schema else []
        lines += [line for part in self.head.splitlines() for line in _comment(part, "")]
        lines.append("---")
        for setting in self.box:
            lines += [*_setting(setting, ""), ""]
        lines.append("box_deployments:")
        for number, setting in enumerate(self.deployment):
            lines += _setting(setting, "  - " if number == 0 else "    ")
        if self.notes:
            lines += ["", *(line for note in self.notes for line in _comment(note, ""))]
        return "\n".join(lines) + "\n"

    def values(self) -> dict[str, object]:
        """What the file declares."""
        settled = {one.name: one.value for one in self.deployment if not one.offered}
        box = {one.name: one.value for one in self.box if not one.offered}
        return {**box, "box_deployments": [settled]}


def _setting(setting: Setting, indent: str) -> list[str]:
    space = indent.replace("-", " ")
    mark = "# " if setting.offered else ""
    value = f" {flow(setting.value)}" if setting.name else ""
    line = f"{indent}{mark}{setting.name}:{value}" if setting.name else ""
    return [*_comment(setting.comment, space), *([line] if line else [])]


def _comment(text: str, indent: str) -> list[str]:
    """The text as comment lines; whatever might end a line in it is one space."""
    words = printable(" ".join(text.split()))
    mark = f"{indent}# "
    return textwrap.wrap(
        words,
        _WIDTH,
        initial_indent=mark,
        subsequent_indent=mark,
        break_long_words=False,
        break_on_hyphens=False,
    )


@cache
def _comments() -> dict[str, str]:
    found: dict[str, str] = yaml.safe_load(Path(__file__).with_suffix(".yml").read_text(encoding="utf-8"))
    return found


def comment(key: str, **words: object) -> str:
    """A comment with its words filled in. Raises KeyError for one that there is not."""
    return _comments()[key].format(**{name: _word(word) for name, word in words.items()})


def _word(word: object) -> str:
    text = printable(str(word))
    return text if len(text) <= _LONGEST_WORD else text[:_LONGEST_WORD] + "…"
