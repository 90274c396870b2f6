"""GRUB's menu as it stands on a host, and the entry of it that boots next.

After https://www.gnu.org/software/grub/manual/grub/ ("default", "Menu entry commands", "The GRUB environment
block") and, for entries in files of their own, https://uapi-group.org/specifications/specs/boot_loader_specification/.
"""

from __future__ import annotations

import glob
import os
import re
import shlex
from typing import Callable, Dict, List, NamedTuple, Optional

from ansible.module_utils import host_reading

MENUS = ("/boot/grub/grub.cfg", "/boot/grub2/grub.cfg")
ENVIRONMENTS = ("/boot/grub/grubenv", "/boot/grub2/grubenv")
ENTRIES = "/boot/loader/entries/*.conf"


class Entry(NamedTuple):
    """A line of the menu. image: path of the kernel's image as GRUB has it. inside: what a submenu holds."""

    title: str
    id: str
    image: Optional[str] = None
    inside: Optional[List["Entry"]] = None


class Menu(NamedTuple):
    """entries: in order. default: the menu's own, `${saved_entry}` for the one of the environment block."""

    entries: List[Entry]
    default: str


def environment(text: str) -> Dict[str, str]:
    """The environment block: `name=value` lines, filled up with `#`."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {
        name: re.sub(r"\\(.)", r"\1", value)
        for name, equals, value in (line.partition("=") for line in lines)
        if equals
    }


_OPENS = re.compile(r"^(?P<kind>menuentry|submenu)\s+(?P<words>.*)\{\s*$")
_IMAGE = re.compile(r"^(?:linux(?:16|efi)?|module2?)\s+(?P<path>\S*/vmlinu\S+)")
_DEFAULT = re.compile(r"^set\s+default=(?P<value>.*)$")


class _Block:
    """An entry that is being read, from its opening brace on."""

    def __init__(self, kind: str, words: List[str]) -> None:
        self.submenu, self.words = kind == "submenu", words
        self.image: Optional[str] = None
        self.inside: List[Entry] = []

    def entry(self) -> Entry:
        """The whole of it."""
        marks = ("--id", "$menuentry_id_option", "${menuentry_id_option}")
        places = [place for place, word in enumerate(self.words[:-1]) if word in marks]
        title, name = [*self.words, ""][0], self.words[places[0] + 1] if places else ""
        return Entry(title, name, self.image, self.inside if self.submenu else None)


def menu(text: str, files: List[Entry]) -> Menu:
    """What a grub.cfg says. files: the entries that stand in files of their own, for its word `blscfg`."""
    top: List[Entry] = []
    # Each open brace: the entry that it belongs to, None for a function's.
    braces: List[Optional[_Block]] = []
    default = "0"
    for line in map(str.strip, text.splitlines()):
        around = [block for block in braces if block is not None]
        opens, image, chosen = _OPENS.match(line), _IMAGE.match(line), _DEFAULT.match(line)
        if opens:
            braces.append(_Block(opens.group("kind"), _words(opens.group("words"))))
        elif line == "}" and braces:
            done = braces.pop()
            if done is not None:
                (around[-2].inside if len(around) > 1 else top).append(done.entry())
        elif line.endswith("{"):
            braces.append(None)
        elif around:
            around[-1].image = around[-1].image or (image.group("path") if image else None)
        elif line == "blscfg":
            top += files
        elif chosen and "next_entry" not in chosen.group("value"):
            default = " ".join(_words(chosen.group("value")))
    return Menu(top, default)


def _words(text: str) -> List[str]:
    """GRUB quotes as the shell does."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def files(root: str, newest_first: Callable[[List[str]], List[str]]) -> List[Entry]:
    """The entries in files of their own, named after kernels: in GRUB's order, the newest first."""
    texts = {
        os.path.basename(path)[: -len(".conf")]: host_reading.text(path) or ""
        for path in glob.glob(glob.escape(root) + ENTRIES)
    }
    found = []
    for name in newest_first(list(texts)):
        fields = dict(line.strip().partition(" ")[::2] for line in texts[name].splitlines())
        found.append(Entry(fields.get("title", "").strip(), name, fields.get("linux", "").strip() or None))
    return found


def pick(entries: List[Entry], reference: str) -> Optional[Entry]:
    """The entry that a reference means: ids, titles or numbers, those of submenus joined by `>`.

    What is not there means the first one, as it does to GRUB.
    """
    if not entries:
        return None
    here, _, below = re.sub("(?<!>)>(?!>)", "\0", reference).partition("\0")
    here = here.replace(">>", ">")
    named = [one for one in entries if here in (one.id, one.title) and here]
    numbered = entries[int(here) : int(here) + 1] if re.fullmatch("[0-9]{1,4}", here) else []
    chosen = [*named, *numbered, entries[0]][0]
    if chosen.inside is None:
        return chosen
    return pick(chosen.inside, below)


def next_image(root: str, newest_first: Callable[[List[str]], List[str]], fallback: str) -> Optional[str]:
    """Path of the kernel's image that GRUB boots next, None where there is no menu or it says none.

    fallback: what a tool of the distribution says is the default, which knows more than this reading.
    """
    texts = [host_reading.text(root + path) or "" for path in MENUS]
    blocks = [host_reading.text(root + path) or "" for path in ENVIRONMENTS]
    values = environment(next((text for text in blocks if text), ""))
    found = menu(next((text for text in texts if text), ""), files(root, newest_first))
    # Set for one boot only, by grub-reboot.
    once = values.get("next_entry", "")
    if fallback and not once:
        return fallback
    default = found.default.replace("${saved_entry}", values.get("saved_entry", ""))
    chosen = pick(found.entries, once or default)
    return chosen.image if chosen else fallback or None
