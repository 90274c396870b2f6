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
_ADDRESS = re.compile(r"(?:([0-9A-Fa-f]{1,8}):)?([0-9A-Fa-f]{1,2}):([0-9A-Fa-f]{1,2})\.([0-7])")
_MENTIONED = re.compile(r"(?:^|[\s/;&|(`\"'])nvidia-smi(?=\s)")
_SETS = re.compile(
    r"(?:^|\s)(?:%s)(?=[\s=]|$)"
    % "|".join(sorted(map(re.escape, [*SETTINGS, *RESETS]), key=len, reverse=True))
)
#: How programs in other languages set cards: NVML's functions, or nvidia-smi in a list of words.
_NVML = re.compile(
    r"nvmlDeviceSet(?:PowerManagementLimit|GpuLockedClocks|MemoryLockedClocks|ApplicationsClocks|PersistenceMode)"
)
_BETWEEN = re.compile(r"[\s\"',\[\]()]+")
#: So many characters after its name a call of nvidia-smi is looked for its options.
_CALL = 300
#: A variable that holds the program's name.
_NAMED = re.compile(
    r"(?:^|[\s;])(?P<name>[A-Za-z_]\w*)=[\"']?(?:/[\w/.-]*/)?nvidia-smi[\"']?(?=[\s;]|$)", re.MULTILINE
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


def lines_of_program(text: str) -> List[int]:
    """Lines of a program in another language, from 1, in which it sets cards."""
    found = {text.count("\n", 0, one.start()) + 1 for one in _NVML.finditer(text)}
    for one in re.finditer("nvidia-smi", text):
        line = text.rfind("\n", 0, one.start()) + 1
        call = _BETWEEN.sub(" ", text[one.start() : one.start() + _CALL]) + " "
        if not text[line : one.start()].lstrip().startswith(("#", "//")) and _SETS.search(call):
            found.add(text.count("\n", 0, line) + 1)
    return sorted(found)


def program_variables(text: str) -> Optional["re.Pattern[str]"]:
    """What a script writes for the program where it has its name in a variable; None where it has not."""
    names = sorted({one.group("name") for one in _NAMED.finditer(text)})
    return (
        re.compile(r"\"?\$(?:\{(?:%s)\}|(?:%s)\b)\"?" % ("|".join(names), "|".join(names))) if names else None
    )


def is_card(named: Optional[str], index: int, uuid: Optional[str], bus: str) -> bool:
    """Whether what a call's -i names is this card: every card without it. bus: its address on the bus."""
    if named is None or (named.isascii() and named.isdigit() and len(named) < 10 and int(named) == index):
        return True
    if uuid and named.lower() == uuid.lower():
        return True
    return ":" in named and _address(named) == _address(bus) != ()


def _address(text: str) -> Tuple[int, ...]:
    """Domain, bus, device and function; nothing for a text that is no address."""
    found = _ADDRESS.fullmatch(text.strip())
    return tuple(int(part or "0", 16) for part in found.groups()) if found else ()


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
