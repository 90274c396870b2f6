"""The terminal: tables that are aligned and fit 100 columns, JSON for programs, colour only on a terminal."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from rich.console import Console
from rich.table import Table

from boxwright.errors import EXIT_FAILED, UserError

WIDTH = 100


def console(stderr: bool = False) -> Console:
    """A console at most 100 columns wide; without colour and markup where the output is not a terminal."""
    stream = sys.stderr if stderr else sys.stdout
    plain = not stream.isatty() or "NO_COLOR" in os.environ
    width = min(WIDTH, Console(stderr=stderr).width) if stream.isatty() else WIDTH
    return Console(
        file=stream, width=width, no_color=plain, highlight=False, markup=False, soft_wrap=True, emoji=False
    )


def say(text: str = "") -> None:
    """Print a line for a person."""
    print(text, flush=True)


def say_aside(text: str = "") -> None:
    """Print a line for a person beside the JSON that a program reads."""
    print(text, file=sys.stderr, flush=True)


def show_json(value: Any) -> None:
    """Print a value for a program."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> None:
    """Print an aligned table; `right` names the columns (by number) that hold numbers."""
    drawn = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for number, header in enumerate(headers):
        drawn.add_column(header, justify="right" if number in right else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*row)
    console().print(drawn, soft_wrap=False)


def fault_of_ours(error: Exception) -> str:
    """What is said of an error that nobody foresaw; the traceback goes to a file that a report can carry."""
    with tempfile.NamedTemporaryFile("w", prefix="boxwright-fault-", suffix=".log", delete=False) as log:
        traceback.print_exception(error, file=log)
    said = " ".join(str(error).split()) or "no message"
    return f"boxwright itself failed: {type(error).__name__}: {said}\n  details: {log.name}"


def told(verb: Callable[..., Any]) -> Callable[..., Any]:
    """A verb whose user errors end as a message on stderr and an exit status, never as a traceback."""

    @wraps(verb)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            return verb(*args, **kwargs)
        except UserError as error:
            print(str(error), file=sys.stderr)
            sys.exit(error.status)
        except KeyboardInterrupt:
            print("\nstopped by hand; running the same command again carries on", file=sys.stderr)
            sys.exit(130)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(EXIT_FAILED)
        except Exception as error:
            print(fault_of_ours(error), file=sys.stderr)
            sys.exit(EXIT_FAILED)

    return wrapper
