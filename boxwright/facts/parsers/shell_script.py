"""Scripts of a shell, command by command: what they run, told from what is text to them."""

from __future__ import annotations

import re
from typing import Iterator, List, NamedTuple, Tuple

#: Programs that run what they are given as text: in quotes, in a here-document, through a pipe.
_RUNS_TEXT = re.compile(
    r"(?:^|[\s;&|(`/])(?:sh|bash|dash|zsh|ksh|eval|su|runuser|ssh|xargs|watch|at|batch|screen|tmux)(?=\s|$)"
)
#: Commands whose words are text.
_TELLS = re.compile(r"(?:^|(?<=[;&|({]))\s*(?:echo|printf|logger|wall)\s[^;&|]*")
_HERE = re.compile(r"<<(?P<dash>-?)[ \t]*(?P<word>(?:'[^'\n]*'|\"[^\"\n]*\"|\\.|[^\s;&|<>()'\"\\])+)")
#: Characters that mean nothing by themselves.
_PLAIN = re.compile(r"[A-Za-z0-9_./=:,@%^+\- \t]+")
_GOES_ON = re.compile(r"(?:\||&&)\s*$")
_ENDS = re.compile(r"exit(?:\s+\d+)?\s*;?\s*$")
_OPENS, _CLOSES = ("if", "case", "do", "{"), ("fi", "esac", "done", "}")
_NESTING = re.compile(r"(?:^|(?<=[\s;&|()]))(?:if|case|do|fi|esac|done|[{}])(?=$|[\s;&|()])")


class Command(NamedTuple):
    """What the shell reads as one line. first, last: of the file, from 1.

    text: continued lines as one, without comments. code: the same without what is text to the command.
    here: bodies of its here-documents. whole: nothing but these lines, each as long as it is in the file.
    """

    first: int
    last: int
    text: str
    code: str
    here: Tuple[str, ...]
    whole: bool

    @property
    def run(self) -> List[str]:
        """What of it is run, in pieces: also what a shell is given as text."""
        if _RUNS_TEXT.search(self.code):
            return [self.text, *(line for body in self.here for line in body.split("\n"))]
        return [_TELLS.sub("", self.code)]


def commands(text: str) -> Iterator[Command]:
    """The commands of a script in order, up to an `exit` that nothing stands around."""
    depth = 0
    for command in _Reader(text).all():
        if depth == 0 and _ENDS.match(command.code.strip()):
            return
        for word in _NESTING.findall(command.code):
            depth += (word in _OPENS) - (word in _CLOSES)
        yield command


class _Reader:
    """Reads from left to right. stack: what is open around the place, the innermost last."""

    def __init__(self, text: str) -> None:
        self.script, self.at, self.line = text, 0, 1
        self.stack: List[str] = []
        self.waiting: List[Tuple[str, bool]] = []
        self.begin()

    def begin(self) -> None:
        """A new command."""
        self.first = self.line
        self.text: List[str] = []
        self.code: List[str] = []
        self.here: List[str] = []
        self.quoted = 0

    def all(self) -> Iterator[Command]:
        """Every command with something in it."""
        while self.at < len(self.script):
            if self.script[self.at] != "\n":
                self.step()
            elif self.line_ends():
                yield from self.done(True)
                self.line += 1
                self.at += 1
                self.begin()
            elif self.stack:
                self.put(1)
            else:
                self.line += 1
                self.at += 1
                self.text.append(" ")
                self.code.append(" ")
        yield from self.done(not self.stack and not self.waiting)

    def done(self, closed: bool) -> Iterator[Command]:
        """The command, if there is one."""
        text, code = "".join(self.text).strip(), "".join(self.code).strip()
        if text:
            whole = closed and not self.here and "\n" not in text
            yield Command(self.first, self.line, text, code, tuple(self.here), whole)

    def put(self, length: int, shown: bool = True) -> None:
        """Take characters as they are; shown: they are no text to the command."""
        piece = self.script[self.at : self.at + length]
        self.text.append(piece)
        if shown:
            self.code.append(piece)
        self.line += piece.count("\n")
        self.at += length

    def line_ends(self) -> bool:
        """At the end of a line: whether the command ends; here-documents after it are taken."""
        if self.waiting:
            self.take_here()
        return not self.stack and not _GOES_ON.search("".join(self.code[-200:]))

    def take_here(self) -> None:
        """The bodies that begin after this line; the place is then the end of their last line."""
        for word, dashed in self.waiting:
            body: List[str] = []
            while True:
                end = self.script.find("\n", self.at + 1)
                line = self.script[self.at + 1 : end if end >= 0 else len(self.script)]
                self.at = end if end >= 0 else len(self.script)
                if self.at + 1 <= len(self.script):
                    self.line += 1
                if (line.lstrip("\t") if dashed else line) == word or end < 0:
                    break
                body.append(line)
            self.here.append("\n".join(body))
        self.waiting = []

    def step(self) -> None:
        """One piece: a character, a whole quoted text, an operator."""
        script, at = self.script, self.at
        plain = _PLAIN.match(script, at)
        if plain:
            self.put(plain.end() - at)
            return
        one, two, inner = script[at], script[at : at + 2], self.stack[-1] if self.stack else ""
        here = _HERE.match(script, at) if two == "<<" and inner != '"' and "((" not in self.stack else None
        if two == "\\\n":
            self.line += 1
            self.at += 2
        elif one == "\\":
            self.put(2)
        elif one == '"':
            self.double(inner)
        elif inner != '"' and (one == "'" or two == "$'"):
            self.single(two == "$'")
        elif inner != '"' and one == "#" and (at == 0 or script[at - 1] in " \t\n;&|()`"):
            end = script.find("\n", at)
            self.at = end if end >= 0 else len(script)
        elif script[at : at + 3] == "<<<":
            self.put(3)
        elif here:
            word = re.sub(r"['\"\\]", "", here.group("word"))
            self.waiting.append((word, here.group("dash") == "-"))
            self.put(here.end() - at)
        else:
            self.brackets(one, inner)

    def brackets(self, one: str, inner: str) -> None:
        """Substitutions open and close; any other character stands for itself."""
        script, at = self.script, self.at
        arithmetic = next((len(word) for word in ("$((", "((") if script.startswith(word, at)), 0)
        if arithmetic and (arithmetic == 3 or inner != '"'):
            self.stack.append("((")
            self.put(arithmetic)
        elif inner == "((" and script.startswith("))", at):
            self.stack.pop()
            self.put(2)
        elif script.startswith("$(", at):
            self.stack.append("(")
            self.put(2)
        else:
            if one == "`" and "`" in self.stack:
                del self.stack[self.stack.index("`") :]
            elif one == "`" or (one == "(" and inner in ("(", "((")):
                self.stack.append("`" if one == "`" else "(")
            elif one == ")" and inner == "(":
                self.stack.pop()
            self.put(1)

    def double(self, inner: str) -> None:
        """A double quote: what it closes is text where white space is in it."""
        if inner == '"':
            self.stack.pop()
            self.put(1)
            if '"' not in self.stack:
                quoted = "".join(self.code[self.quoted :])
                del self.code[self.quoted :]
                self.code.append('""' if re.search(r"\s", quoted) else quoted)
            return
        if '"' not in self.stack:
            self.quoted = len(self.code)
        self.stack.append('"')
        self.put(1)

    def single(self, escaped: bool) -> None:
        """A text in single quotes, whole; escaped: a backslash means something in it ($'…')."""
        begin = self.at + (2 if escaped else 1)
        body = re.compile(r"(?:\\.|[^'\\])*'" if escaped else r"[^']*'", re.DOTALL).match(self.script, begin)
        if not body:
            self.stack.append("'")
            self.put(len(self.script) - self.at, shown=False)
            return
        text = bool(re.search(r"\s", body.group()))
        if text:
            self.code.append("''")
        self.put(body.end() - self.at, shown=not text)
