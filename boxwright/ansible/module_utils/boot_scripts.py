"""Scripts that run at boot: what in them sets the cards, and which further scripts they run."""

from __future__ import annotations

import glob
import os
import re
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from ansible.module_utils import host_reading, shell_script, smi_commands

#: Longest script that is read, in bytes; longest line that is told, in characters.
LONGEST, SHOWN = 256 << 10, 200
#: So many scripts are read, and so deep: what is more is no person's setting of cards.
MOST, DEEPEST = 256, 5
#: Where names without a path are looked for, of the places on systemd's PATH that people put theirs in.
PROGRAMS = ("/usr/local/sbin", "/usr/local/bin")
_PATH = re.compile(r"(?<![^\s=\"'@+!:|;&(<-])/(?!dev/|proc/|sys/)[^\s;\"'|&()<>`$]+")
_RELATIVE = re.compile(r"(?<![^\s;|&(\"'])\./([^\s;\"'|&()<>`$]+)")
_NAME = re.compile(r"(?<![^\s;|&(\"'])[A-Za-z0-9][\w.+-]*(?=[\s;|&)\"']|$)")
_FOLDER = re.compile(r"(?:^|[\s;&|(])cd\s+[\"']?(/[^\s;\"'|&()<>`$]*)")
_HOME = re.compile(r"(?<![^\s\"'])(?:~|\$HOME|\$\{HOME\})/")
_SHELL = re.compile(r"#!\s*(?:\S*/env\s+(?:-\S+\s+)*)?(?:\S*/)?(?:ba|da|z|k|a)?sh\b")
#: Boxwright's own files.
OURS = re.compile(r"/boxwright[^/]*$|/boxwright[^/]*\.d/|/boxwright/")


class Call(NamedTuple):
    """A place that sets cards. path, first, last: where; via: `file:line` that runs it, "" for none.

    plain: it is one whole call, on whole lines of its own.
    """

    path: str
    first: int
    last: int
    text: str
    command: smi_commands.SmiCommand
    plain: bool
    via: str

    def entry(self, movable: bool) -> Dict[str, Any]:
        """As a raw value."""
        return {
            "path": self.path,
            "line": self.first,
            "last": self.last,
            "text": host_reading.masked(self.text[:SHOWN]),
            "what": self.command.what,
            "card": self.command.card,
            "movable": movable,
            "via": self.via,
        }


class Reading:
    """One reading of a host's scripts, each once. root: prefix of every path."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.seen: Set[str] = set()
        self.read = 0
        # Nearly every word of a script is the name of no program there: what there is, is listed once.
        self.programs: Dict[str, List[str]] = {}
        for where in PROGRAMS:
            for name in os.listdir(root + where) if os.path.isdir(root + where) else ():
                self.programs.setdefault(name, []).append("%s/%s" % (where, name))

    def script(self, path: str, via: str = "", depth: int = 0) -> Iterator[Call]:
        """What a script sets, and the scripts that it runs."""
        real = os.path.realpath(self.root + path)
        if real in self.seen or depth > DEEPEST or self.read >= MOST or OURS.search(path):
            return
        self.seen.add(real)
        text = text_of(self.root + path)
        if text is None:
            return
        self.read += 1
        if text.startswith("#!") and not _SHELL.match(text):
            lines = text.split("\n")
            for number in smi_commands.lines_of_program(text):
                yield Call(path, number, number, lines[number - 1].strip(), OTHER, False, via)
            return
        yield from self.shell(path, text, via, depth)

    def shell(
        self, path: str, text: str, via: str = "", depth: int = 0, at: Optional[Tuple[int, str]] = None
    ) -> Iterator[Call]:
        """The same of a shell's text. at: line and text of the place in another file that it is of."""
        lines, folder = text.split("\n"), "/"
        variables = smi_commands.program_variables(text)
        for command in shell_script.commands(text):
            first, last = (at[0], at[0]) if at else (command.first, command.last)
            found = _setting(command, variables)
            if found:
                alone = lines[command.first - 1].strip() if first == last else " ".join(command.text.split())
                plain = found.plain and command.whole
                yield Call(path, first, last, at[1] if at else alone, found, plain, via)
            for piece in command.run:
                folder = (_FOLDER.findall(piece) or [folder])[-1]
                yield from self.called(piece, "%s:%d" % (path, first), folder, depth)

    def called(self, piece: str, via: str, folder: str = "/", depth: int = 0) -> Iterator[Call]:
        """What the scripts set that a command runs."""
        piece = _HOME.sub("/root/", piece)
        paths = _PATH.findall(piece)
        paths += [os.path.join(folder, name) for name in _RELATIVE.findall(piece)]
        paths += [path for name in _NAME.findall(piece) for path in self.programs.get(name, ())]
        for path in paths:
            if os.path.isfile(self.root + path):
                yield from self.script(path, via, depth + 1)


#: What is set by more than one plain call of nvidia-smi.
OTHER = smi_commands.SmiCommand(smi_commands.OTHER, "", None, False)


def _setting(
    command: shell_script.Command, variables: Optional["re.Pattern[str]"]
) -> Optional[smi_commands.SmiCommand]:
    """What a command sets; OTHER for all that is not one plain call in its own words."""
    for piece in command.run:
        named = variables.sub("nvidia-smi", piece) if variables else piece
        if not smi_commands.read(named):
            continue
        found: Optional[smi_commands.SmiCommand] = smi_commands.read(command.text)
        return found if named == piece and piece == command.code and found else OTHER
    return None


def text_of(path: str) -> Optional[str]:
    """A script's text, None where there is none, or it is no text or too long to be one."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > LONGEST:
            return None
        with open(path, "rb") as stream:
            # Most of what units start are programs: their first bytes say so.
            if b"\0" in stream.read(64):
                return None
        text = exact(path).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except OSError:
        return None
    return None if "\0" in text else text


def exact(path: str) -> str:
    """A file to the byte: its lines end where the shell ends them, and it can be written as it was."""
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as stream:
        return stream.read()


def files(root: str, patterns: Sequence[str]) -> List[str]:
    """Regular files that are not ours, without the root."""
    found = {path for pattern in patterns for path in glob.glob(glob.escape(root) + pattern)}
    names = sorted(path[len(root) :] for path in found if os.path.isfile(path))
    return [name for name in names if not OURS.search(name)]
