"""Lines of scripts, units and crontabs that set NVIDIA cards by nvidia-smi."""

from __future__ import annotations

import re
import shlex
from typing import List, NamedTuple, Optional, Tuple

#: Options that set something, every spelling, with the setting that they are about.
SETTINGS = {
    "-pm": "persistence",
    "--persistence-mode": "persistence",
    "-pl": "power limit",
    "--power-limit": "power limit",
    "-lgc": "clocks",
    "--lock-gpu-clocks": "clocks",
    "-lmc": "memory clocks",
    "--lock-memory-clocks": "memory clocks",
    "-ac": "application clocks",
    "--applications-clocks": "application clocks",
}
RESETS = {
    "-rgc": "clocks",
    "--reset-gpu-clocks": "clocks",
    "-rmc": "memory clocks",
    "--reset-memory-clocks": "memory clocks",
    "-rac": "application clocks",
    "--reset-applications-clocks": "application clocks",
}
CARD = ("-i", "--id")
#: The setting of a line that is more than one plain call, so that nobody can say what it does.
OTHER = "other"
#: What may come after a plain call: it throws its output or its failure away, or goes to the background.
_AFTER = {">", ">>", ">&", "&>", "&", "||", ";", "1", "2", ":", "true", "/bin/true", "/dev/null"}
_MENTIONED = re.compile(r"(?:^|[\s/;&|(`\"'])nvidia-smi(?=\s)")
_SETS = re.compile(
    r"(?:^|\s)(?:%s)(?=[\s=]|$)"
    % "|".join(sorted(map(re.escape, [*SETTINGS, *RESETS]), key=len, reverse=True))
)
#: Characters by which the shell makes something else of a word.
_EXPANDED = re.compile(r"[$`*?\[\]{}~()<>\\]")


class SmiCommand(NamedTuple):
    """A call that sets cards. what: the setting, OTHER for a line that cannot be read. plain: one whole call.

    value: as given, "" for a reset. card: index, UUID or bus address, None for all.
    """

    what: str
    value: str
    card: Optional[str]
    plain: bool


def read(line: str) -> Optional[SmiCommand]:
    """What a line of a shell sets, None where it sets nothing (a comment, a query)."""
    text = line.strip()
    if text.startswith("#") or not _MENTIONED.search(text) or not _SETS.search(text):
        return None
    found = _plain(_words(text))
    return found or SmiCommand(OTHER, "", None, False)


def _words(text: str) -> List[str]:
    """Words and operators of a line, none where its quotes are not closed."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:
        return []


def _plain(words: List[str]) -> Optional[SmiCommand]:
    """The one call that a line is, None where it is more or something else."""
    if words[:1] == ["sudo"]:
        words = words[1:]
        words = words[1:] if words[:1] == ["-n"] else words
    if not words or words[0].rpartition("/")[2] != "nvidia-smi":
        return None
    set_, card, rest = _options(words[1:])
    if set_ is None or any(word not in _AFTER for word in rest):
        return None
    what, value = set_
    if _EXPANDED.search(value + (card or "")) or "," in (card or ""):
        return None
    return SmiCommand(what, value, card, True)


def _options(words: List[str]) -> Tuple[Optional[Tuple[str, str]], Optional[str], List[str]]:
    """The one setting of a call (None for none or several), its card, and what follows the options."""
    found: List[Tuple[str, str]] = []
    card = None
    while words and words[0].startswith("-"):
        option, equals, value = words[0].partition("=")
        words = words[1:]
        if option in RESETS:
            found.append((RESETS[option], ""))
            continue
        if option not in SETTINGS and option not in CARD:
            return None, None, []
        if not equals:
            if not words:
                return None, None, []
            value, words = words[0], words[1:]
        if option in CARD:
            card = value
        else:
            found.append((SETTINGS[option], value))
    return (found[0] if len(found) == 1 else None), card, words
