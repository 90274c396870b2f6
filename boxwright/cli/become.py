"""The password that sudo wants on a box: asked for on the terminal, handed over by a pipe, kept nowhere."""

from __future__ import annotations

import getpass
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from boxwright.errors import EXIT_BAD_INPUT, UserError

#: Ansible reads the password from the file of this name: a named pipe, so that no disk ever holds it, and
#: nothing is left in it once it was read.
VARIABLE = "ANSIBLE_BECOME_PASSWORD_FILE"
#: Characters of a password, and more.
LONGEST = 1024

_given: list[str] = []


def ask(wanted: bool) -> None:
    """Ask the person at the terminal, where it is wanted; every run of this process then has the password.

    Raises UserError where there is no terminal to ask on.
    """
    if not wanted:
        return
    if not sys.stdin.isatty():
        raise UserError(
            "--ask-become-pass: there is no terminal to ask for the password on",
            status=EXIT_BAD_INPUT,
            ways_out=(
                "run it in a terminal",
                f"{VARIABLE}=FILE in the environment: only you can read it, or it is a program that tells",
                "ansible_become_password in a vault of the inventory",
            ),
        )
    said = getpass.getpass("sudo's password on the box: ")
    if not said or len(said.encode()) > LONGEST or "\n" in said:
        raise UserError("--ask-become-pass: no password was given", status=EXIT_BAD_INPUT)
    _given[:] = [said]


@contextmanager
def handed_over(directory: Path) -> Iterator[dict[str, str]]:
    """The variables of its environment by which a run gets the password, once; directory: one of its own."""
    if not _given:
        yield {}
        return
    pipe = directory / "become"
    os.mkfifo(pipe, 0o600)
    writer = threading.Thread(target=_write, args=(pipe, _given[0]), daemon=True)
    writer.start()
    try:
        yield {VARIABLE: str(pipe)}
    finally:
        # Where nobody has read it, the writer still waits for somebody who does, or has not come to waiting.
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        writer.join(timeout=5)
        os.close(reader)


def _write(pipe: Path, password: str) -> None:
    with suppress(BrokenPipeError), pipe.open("wb", buffering=0) as stream:
        stream.write(password.encode() + b"\n")
