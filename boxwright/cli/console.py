"""The terminal: tables that are aligned and fit 100 columns, JSON for programs, colour only on a terminal."""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
import textwrap
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from boxwright.errors import EXIT_INTERRUPTED, UserError
from boxwright.texts import printable

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 100


def console(stderr: bool = False) -> Console:
    """A console at most 100 columns wide; without colour and markup where the output is not a terminal.

    rich is imported only where a table is drawn: most of what a verb prints needs none.
    """
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    plain = not stream.isatty() or "NO_COLOR" in os.environ
    width = min(WIDTH, Console(stderr=stderr).width) if stream.isatty() else WIDTH
    return Console(
        file=stream,
        force_terminal=stream.isatty(),
        width=width,
        no_color=plain,
        highlight=False,
        markup=False,
        soft_wrap=True,
        emoji=False,
    )


def say(text: str = "") -> None:
    """Print a line for a person; what a terminal would obey is written as an escape."""
    _write(_harmless(text))


def say_on(text: str, *, dim: bool = False, aside: bool = False) -> None:
    """Print a part of a text that goes on, or ends with its own line feed; dim only on a terminal."""
    stream = sys.stderr if aside else sys.stdout
    # Not `_harmless`: a tab is at home in a program that a model writes.
    text = "".join(one if one in "\n\t" else printable(one) for one in text)
    if dim and stream.isatty() and "NO_COLOR" not in os.environ:
        text = f"\033[2m{text}\033[22m"
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputLost(error) from error


def _write(text: str) -> None:
    """Print to standard output. Raises OutputLost where it cannot be written, as on a full disk."""
    try:
        # In one piece: several boxes may be told of at once.
        print(text + "\n", end="", flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputLost(error) from error


class OutputLost(UserError):
    """Standard output cannot be written; so this is told on standard error, also with --json."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"the output cannot be written: {error.strerror or error}")


def say_aside(text: str = "") -> None:
    """Print a line for a person beside the JSON that a program reads."""
    print(_harmless(text) + "\n", end="", file=sys.stderr, flush=True)


def _harmless(text: str) -> str:
    """Names come from hosts and hubs: they must not move the cursor or colour what follows."""
    return "\n".join(printable(line) for line in text.split("\n"))


def wrapped(text: str, indent: int = 0, hang: int = 0) -> str:
    """A text in lines of the page's width, indented by so many columns; all but the first by `hang` more."""
    space = " " * indent
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=space,
        subsequent_indent=space + " " * hang,
        break_on_hyphens=False,
        break_long_words=False,
    )


def show_json(value: Any) -> None:
    """Print a value for a program: valid JSON, whatever the terminal's encoding is."""
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(value, indent=2, ensure_ascii=not unicode)
    # What turns the direction of writing, or shows as nothing, is an escape in JSON too.
    _write(text if text.isascii() else "".join(map(_escaped, text)))


def _escaped(character: str) -> str:
    return character if character == "\n" or character.isprintable() else json.dumps(character)[1:-1]


def tell(error: UserError, *, as_json: bool) -> NoReturn:
    """Say an error and end with its status: on stderr, or as `{"error": …}` on stdout for a program."""
    if isinstance(error, OutputLost):
        silence()
    elif as_json:
        try:
            show_json({"error": error.to_json()})
        except (OutputLost, BrokenPipeError):
            silence()
        else:
            sys.exit(error.status)
    print(str(error), file=sys.stderr)
    sys.exit(error.status)


def silence() -> None:
    """Let what is left to write go nowhere: whoever read it is gone, and Python would complain at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> None:
    """Print an aligned table; `right` names the columns (by number) that hold numbers."""
    from rich.table import Table

    drawn = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for number, header in enumerate(headers):
        drawn.add_column(header, justify="right" if number in right else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*map(_harmless, row))
    screen = console()
    screen.file = page = io.StringIO()
    screen.print(drawn, soft_wrap=False)
    for line in page.getvalue().splitlines():
        _write(line.rstrip())


def fault_of_ours(error: Exception) -> UserError:
    """What is said of an error that nobody foresaw; the traceback goes to a file that a report can carry."""
    with tempfile.NamedTemporaryFile("w", prefix="boxwright-fault-", suffix=".log", delete=False) as log:
        traceback.print_exception(error, file=log)
    said = " ".join(str(error).split()) or "no message"
    return UserError(f"boxwright itself failed: {type(error).__name__}: {said}", why=f"details: {log.name}")


def stopped() -> UserError:
    """What is said after Ctrl-C."""
    return UserError("stopped by hand; running the same command again carries on", status=EXIT_INTERRUPTED)


def open_streams() -> None:
    """Let the three standard streams be there where a caller closed them (`>&-`), as what goes nowhere.

    Otherwise the next file that is opened takes a closed one's number, and what is printed lands in it.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def tolerant(*streams: Any) -> None:
    """Let streams write what their encoding cannot (a bar, a name with a stray byte) as an escape."""
    for stream in streams:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
