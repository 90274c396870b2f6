"""The command line itself: invoke's program, whose own mistakes are told like all others.

invoke ends with status 1 where it cannot make sense of a word, and in words of its own; here that is wrong
input (status 2), with what was perhaps meant, and JSON where the command line asks for it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import invoke.main
from invoke.exceptions import Exit, ParseError

from boxwright.cli.console import tell, tolerant
from boxwright.errors import EXIT_BAD_INPUT, UserError
from boxwright.spec.suggestions import nearest

_UNKNOWN = re.compile(r"No idea what '(?P<word>.*)' is!", re.DOTALL)
_VALUE = re.compile(r"Flag <Argument: (?P<name>[^ >]+).*> needed value", re.DOTALL)
_MISSING = re.compile(r"'(?P<verb>[^']+)' did not receive required positional arguments?: (?P<names>.*)")
_GROUP = re.compile(r"Sub-collection '(?P<word>.*)' not found!", re.DOTALL)


class Program(invoke.main.Program):  # type: ignore[misc]  # invoke ships no types
    """invoke's program with Boxwright's exit statuses."""

    def parse_core(self, argv: list[str] | None) -> None:
        """Options before the first verb."""
        tolerant(sys.stdout, sys.stderr)
        with self._judged():
            super().parse_core(argv)
        keep_bytecode()

    def parse_tasks(self) -> None:
        """Verbs and their options."""
        with self._judged():
            super().parse_tasks()

    def parse_cleanup(self) -> None:
        """--help VERB and --list."""
        with self._judged():
            super().parse_cleanup()

    @contextmanager
    def _judged(self) -> Iterator[None]:
        try:
            yield
        except ParseError as error:
            wrong = mistake(str(error), self._verbs(), *_within(error))
        except Exit as done:
            if not done.message:
                raise
            wrong = mistake(done.message, self._verbs())
        else:
            return
        tell(wrong, as_json="--json" in sys.argv)

    def _verbs(self) -> Sequence[str]:
        parser = getattr(self, "parser", None)
        return sorted(parser.contexts) if parser else ()


def _within(error: Any) -> tuple[str, Sequence[str]]:
    """The verb in which a word was met, and its options."""
    context: Any = getattr(error, "context", None)
    if context is None or not context.name:
        return "", ()
    return context.name, sorted(context.flags)


def mistake(said: str, verbs: Sequence[str], verb: str = "", options: Sequence[str] = ()) -> UserError:
    """What is wrong with a command line, from what invoke said of it.

    verbs: all that there are. verb, options: in which a word was met, and what it takes.
    """
    help_on = f"./invoke --help {verb} tells its options" if verb else "./invoke --list names the verbs"
    if found := _UNKNOWN.fullmatch(said) or _GROUP.fullmatch(said):
        return _unknown(found["word"], verbs, verb, options, help_on)
    if found := _VALUE.match(said):
        return _wrong(f"--{found['name']} needs a value, and none is there", help_on)
    if found := _MISSING.match(said):
        names = found["names"].replace("'", "")
        return _wrong(f"{found['verb']} needs a {names}", f"./invoke {found['verb']} {names.upper()}")
    return _wrong(" ".join(said.split()), help_on)


def _unknown(word: str, verbs: Sequence[str], verb: str, options: Sequence[str], help_on: str) -> UserError:
    shown = ascii(word) if not word.isprintable() else f'"{word}"'
    if word.startswith("-"):
        guess = nearest(word, options)
        what = f"{verb} has no option {shown}" if verb else f"there is no option {shown}"
    else:
        guess = nearest(word, verbs)
        what = f"there is no verb {shown}" + (f", and {verb} takes no such word" if verb else "")
    return _wrong(what, f"did you mean {guess}?" if guess else "", help_on)


def _wrong(what: str, *ways_out: str) -> UserError:
    return UserError(what, status=EXIT_BAD_INPUT, ways_out=tuple(way for way in ways_out if way))


def keep_bytecode() -> None:
    """Let Python keep what it compiles, which invoke forbids: each verb would compile Boxwright anew."""
    sys.dont_write_bytecode = bool(sys.flags.dont_write_bytecode)


def adopt() -> None:
    """Let plain `invoke`, which is running its own program by now, go on as this one."""
    keep_bytecode()
    if type(invoke.main.program) is not Program:
        invoke.main.program.__class__ = Program


def main() -> None:
    """What the wrapper starts."""
    program = Program(name="Boxwright", binary="invoke", binary_names=["invoke"])
    invoke.main.program = program
    program.run()
