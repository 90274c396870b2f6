"""Texts that came from elsewhere, made fit to print."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable


def printable(text: str) -> str:
    """The text with everything that a terminal would obey, or not show, written as an escape."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


#: A number of tokens as model cards write it: `128k`, `1M`, `131,072`.
_THOUSANDS = re.compile(r"([0-9]{1,6})\s?([kKmM])(?:i?[bB]?|\s?tokens)?|([0-9]{1,3}(?:[,_' ][0-9]{3})+)")


def thousands(text: str) -> int | None:
    """The number of tokens that `128k`, `1M` or `131,072` stands for; None for anything else."""
    found = _THOUSANDS.fullmatch(text.strip())
    if found is None:
        return None
    if found[3]:
        return int("".join(character for character in found[3] if character.isdigit()))
    # Contexts are powers of two, and 128k is 131,072 of them.
    return int(found[1]) * 1024 ** (1 if found[2] in "kK" else 2)


#: A name in words and the numbers behind them, as far as an integer is worth reading.
_PARTS = re.compile(r"([^0-9]*)([0-9]{1,9}|$)")
#: So many names in a row, and more, are told by the first and the last.
_ROW = 4


def numbered(names: Iterable[str]) -> list[str]:
    """Names in the order in which people count; `lab1 to lab20` for what is numbered without a gap."""
    rows: list[list[str]] = []
    for name in sorted(names, key=_counting):
        if rows and _follows(rows[-1][-1], name):
            rows[-1].append(name)
        else:
            rows.append([name])
    return [told for row in rows for told in ([f"{row[0]} to {row[-1]}"] if len(row) >= _ROW else row)]


def _counting(name: str) -> list[tuple[str, int]]:
    # -2: a name without a number is not the one before its own 0.
    found = [(text, int(digits) if digits else -2) for text, digits in _PARTS.findall(name)]
    return found[:-1] if len(found) > 1 and found[-1] == ("", -2) else found


def _follows(before: str, name: str) -> bool:
    *first, (text, number) = _counting(before)
    return _counting(name) == [*first, (text, number + 1)]


def lasting(seconds: float) -> str:
    """Seconds as a person says them: `40 s`, `12 min`, `3 h 5 min`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


def from_home(path: str) -> str:
    """A path as a shell takes it, shorter where it lies in one's home: `~/.local/…`."""
    home = os.environ.get("HOME", "").rstrip("/")
    return f"~{path[len(home) :]}" if home and path.startswith(f"{home}/") else path


#: What Ansible says around what ssh said.
_FRAME = re.compile(
    "^Task failed: |Data could not be sent to remote host .*? over ssh: |Failed to connect to .*? via ssh: "
    "|Module result deserialization failed: No start of json char found "
)


def unframed(message: str) -> str:
    """What ssh or sudo said, in one line, without what Ansible says around it."""
    return _FRAME.sub("", " ".join(message.split()))
