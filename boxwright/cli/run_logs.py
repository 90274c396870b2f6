"""The logs of this machine's runs: where they lie, how many there are, and which one a verb writes."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from boxwright.ansible import state
from boxwright.ansible.run_log import RunLog
from boxwright.cli.console import say_aside

#: Logs of one verb that are kept: what is called every minute takes no other verb's place.
MOST_OF_A_VERB = 20
#: Bytes of all logs together.
MOST_BYTES = 256 << 20


@dataclass
class Call:
    """What this process was called for. verbose: the terminal gets what the log gets.

    words: of its command line, to be repeated with a command that is shown (--inventory …).
    log: the file, once a playbook ran. failed: whether one did not come to a good end on every host.
    """

    verb: str = "run"
    verbose: bool = False
    words: tuple[str, ...] = ()
    log: Path | None = None
    failed: bool = False


#: Of this process: a verb runs several playbooks, and they have one log.
call = Call()


def begin(verb: str, *, verbose: bool = False, words: Sequence[str] = ()) -> None:
    """A verb is called."""
    call.__dict__.update(Call(verb, verbose, tuple(words)).__dict__)


def opened() -> Path | None:
    """The log of this call, made where there is none yet; None where none can be kept, which is said once."""
    if call.log is not None and call.log.is_file():
        return call.log
    try:
        directory = state.directory("logs")
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        name = f"{call.verb}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(3)}.log"
        new = directory / name
        new.touch(0o600, exist_ok=False)
        call.log = new
        make_room(directory, call.verb)
    except OSError as error:
        say_aside(f"note: no log of this run is kept: {error.filename or ''}: {error.strerror or error}")
        return None
    return new


def make_room(directory: Path, verb: str) -> None:
    """Let the oldest logs go: of this verb, and beyond the bytes of all."""
    logs = sorted(directory.glob("*-*Z-*.log"), key=_age, reverse=True)
    own = [path for path in logs if path.name.rsplit("-", 2)[0] == verb]
    gone, total = set(own[MOST_OF_A_VERB:]), 0
    for path in logs:
        total += _size(path)
        if total > MOST_BYTES and path != logs[0]:
            gone.add(path)
    for path in gone:
        with suppress(OSError):
            path.unlink()


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def note(text: str, known: Sequence[str] = ()) -> None:
    """Append what the verb itself knows of the run; known: secrets to be left out."""
    if call.log is None:
        return
    log = RunLog(call.log)
    log.learn(known)
    with suppress(OSError):  # that it cannot be written the run itself has said
        log.write(text)


def named() -> str | None:
    """The log of this call, where a run of it did not come to a good end on every host."""
    return str(call.log) if call.failed and call.log is not None else None
