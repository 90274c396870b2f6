"""Text of systemd unit files: every value quoted so that systemd reads back exactly what was meant."""

from __future__ import annotations

import re
from typing import List, Sequence, Tuple

#: Characters that mean nothing to systemd wherever they stand in an argument.
_PLAIN = re.compile(r"[A-Za-z0-9_@=:,./+-]+")
#: A unit file is read line by line; the others have no business in an argument and no sure spelling.
_REFUSED = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")


def specifiers(text: str) -> str:
    """A setting's value in which `%` stands for itself (systemd.unit(5), "Specifiers")."""
    _refuse(text)
    return text.replace("%", "%%")


def quote(argument: str) -> str:
    """One argument of an Exec line (systemd.service(5), "Command lines"); not for the program's own path.

    `%` begins a specifier, `$` a variable, `\\` an escape, a lone `;` a further command: each is made to
    stand for itself. Raises ValueError for line breaks and other control characters.
    """
    text = specifiers(argument).replace("$", "$$")
    if _PLAIN.fullmatch(argument):
        return text
    return '"%s"' % text.replace("\\", "\\\\").replace('"', '\\"')


def exec_line(groups: Sequence[Sequence[str]], width: int = 0) -> str:
    """An Exec line's value, one group of arguments a line so that a person can read it.

    groups[0][0] is the program's absolute path. width: spaces before each continued line.
    """
    lines = [" ".join(quote(word) for word in group) for group in groups if group]
    return (" \\\n" + " " * width).join(lines)


def render(sections: Sequence[Tuple[str, Sequence[Tuple[str, str]]]], comments: Sequence[str] = ()) -> str:
    """A unit file. sections: (name, [(key, value as systemd is to read it)]); comments go on top."""
    lines: List[str] = ["# %s" % comment for comment in comments]
    for name, settings in sections:
        lines += ([""] if lines else []) + ["[%s]" % name]
        lines += ["%s=%s" % setting for setting in settings]
    return "\n".join(lines) + "\n"


def _refuse(text: str) -> None:
    found = _REFUSED.search(text)
    if found:
        raise ValueError(
            "%r holds a line break or another control character (%r at position %d), which cannot stand "
            "in a systemd unit"
            % (text if len(text) < 80 else text[:77] + "...", found.group(), found.start())
        )
