"""The command line itself: invoke's program, whose own mistakes are told like all others.

invoke ends with status 1 where it cannot make sense of a word, and in words of its own; here that is wrong
input (status 2), with what was perhaps meant, and JSON where the command line asks for it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import invoke.main
from invoke.exceptions import Exit, ParseError, UnknownFileType

from boxwright.cli.console import OutputLost, open_streams, silence, stopped, tell, tolerant
from boxwright.errors import EXIT_BAD_INPUT, EXIT_FAILED, UserError
from boxwright.spec.suggestions import nearest
from boxwright.texts import printable

_UNKNOWN = re.compile(r"No idea what '(?P<word>.*)' is!", re.DOTALL)
_VALUE = re.compile(r"Flag <Argument: (?P<name>[^ >]+).*> needed value", re.DOTALL)
_MISSING = re.compile(r"'(?P<verb>[^']+)' did not receive required positional arguments?: (?P<names>.*)")
_GROUP = re.compile(r"Sub-collection '(?P<word>.*)' not found!", re.DOTALL)


#: As `--list-format` has them.
_LIST_FORMATS = ("flat", "nested", "json")


class Program(invoke.main.Program):  # type: ignore[misc]  # invoke ships no types
    """invoke's program with Boxwright's exit statuses."""

    def parse_core(self, argv: list[str] | None) -> None:
        """Options before the first verb."""
        open_streams()
        tolerant(sys.stdout, sys.stderr)
        with self._judged(ValueError):
            super().parse_core(argv)
        keep_bytecode()

    def parse_collection(self) -> None:
        """The verbs that there are."""
        with self._judged():
            super().parse_collection()

    def parse_tasks(self) -> None:
        """Verbs and their options."""
        words = self.core.unparsed
        if "--help" in words[1:]:
            # invoke takes it for the word that a verb misses: `init --help` is no box called --help.
            self.args["help"].value = words[0]
            words.clear()
        with self._judged():
            super().parse_tasks()
            for verb in self.tasks:
                refuse_empty(verb, words)

    def update_config(self, merge: bool = True) -> None:
        """invoke's own settings, and a file of them that --config names."""
        with self._judged(OSError, EOFError, UnknownFileType):
            given = self.args.config.value
            if given and not Path(given).is_file():
                raise ParseError(f"--config {printable(given)}: there is no such file")
            super().update_config(merge)

    def parse_cleanup(self) -> None:
        """--help VERB and --list."""
        with self._judged():
            if self.args["list-format"].value not in _LIST_FORMATS:
                raise ParseError("--list-format is one of: " + ", ".join(_LIST_FORMATS))
            super().parse_cleanup()

    def print_help(self) -> None:
        """For somebody who named no verb: the verbs, and not invoke's own options."""
        if not hasattr(self, "scoped_collection"):  # `--help` is answered before the verbs are read
            self.load_collection()
            self.list_root, self.scoped_collection = None, self.collection
        self.list_format, self.list_depth = "flat", None
        print("Usage: ./invoke VERB [options]\n")
        self.list_tasks()
        print("./invoke --help VERB tells a verb's options. README.md begins with what to try first.")

    def task_list_opener(self, extra: str = "") -> str:
        """The heading of the list: what invoke calls a task is a verb here."""
        return str(super().task_list_opener(extra)).replace("tasks", "verbs")

    @contextmanager
    def _judged(self, *unusable: type[Exception]) -> Iterator[None]:
        """unusable: what invoke ends with where a value of its own options makes no sense."""
        try:
            yield
        except ParseError as error:
            wrong = mistake(str(error), self._verbs(), *_within(error))
        except Exit as done:
            if not done.message:
                _flush()
                raise
            wrong = mistake(done.message, self._verbs())
        except unusable as error:
            # invoke reads some of its own options without looking whether they make sense.
            said = " ".join(str(error).split()) or "nobody is there to answer"
            wrong = _wrong(f"an option of invoke's own makes no sense: {said}", "./invoke --help names them")
        except KeyboardInterrupt:
            wrong = stopped()
        except OSError as error:
            # A file has a name; what is written to standard output has none.
            if error.filename is not None:
                raise
            _lost(error)
        else:
            return
        tell(wrong, as_json="--json" in sys.argv)

    def _verbs(self) -> Sequence[str]:
        parser = getattr(self, "parser", None)
        return sorted(parser.contexts) if parser else ()


def _flush() -> None:
    try:
        sys.stdout.flush()
    except OSError as error:
        _lost(error)


def _lost(error: OSError) -> NoReturn:
    """End where --list or --help cannot be written: silently where nobody reads on (`| head`)."""
    if isinstance(error, BrokenPipeError):
        silence()
        sys.exit(EXIT_FAILED)
    tell(OutputLost(error), as_json=False)


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
        return _wrong(f"--{found['name'].replace('_', '-')} needs a value, and none is there", help_on)
    if found := _MISSING.match(said):
        names = found["names"].replace("'", "")
        options = " ".join(f"--{name} {name.upper()}" for name in names.split(", "))
        return _wrong(f"{found['verb']} needs a {names}", f"./invoke {found['verb']} {options}")
    return _wrong(" ".join(said.split()), help_on)


def refuse_empty(verb: Any, words: Sequence[str]) -> None:
    """Raises ParseError for an option of a verb that got no value, or one without a visible character.

    verb: as invoke parsed it. invoke takes a repeatable option without its value for one that was not given.
    """
    for argument in verb.args.values():
        if not argument.takes_value or argument.raw_value is None:
            continue
        given = argument.value if argument.kind is list else [argument.raw_value]
        if any(isinstance(one, str) and not one.strip() for one in given):
            raise ParseError(
                f"--{argument.name.replace('_', '-')} needs a value, and an empty one is there", verb
            )
    for word, following in zip(words, [*words[1:], None], strict=True):
        flag = verb.flags.get(word)
        if flag is not None and flag.kind is list and (following is None or following in verb.flags):
            raise ParseError(f"{word} needs a value, and none is there", verb)


def _unknown(word: str, verbs: Sequence[str], verb: str, options: Sequence[str], help_on: str) -> UserError:
    shown = ascii(word) if not word.isprintable() else f'"{word}"'
    if word == "--all" and "--host" in options:
        return _wrong(f"{verb} works on one box at a time", f"./invoke {verb} --host NAME", help_on)
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
