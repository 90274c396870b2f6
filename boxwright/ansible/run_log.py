"""The whole of what Ansible says in a run, in a file that only its user reads, without secrets.

The callback `boxwright_log` writes it. The file stays below a size: of a longer run the middle is left out.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from boxwright.facts.parsers.masking import MASK, mask, tells
from boxwright.texts import printable

#: Environment variables: the file; whether the terminal is to have its lines, too.
FILE, SHOWN = "BOXWRIGHT_LOG", "BOXWRIGHT_VERBOSE"
#: Bytes of the file, and of its begin that stays when its middle goes.
MOST_BYTES, HEAD_BYTES = 4 << 20, 512 << 10
#: Bytes of one task's result: a journal or a box's facts may be as large as they like.
MOST_OF_A_RESULT = 64 << 10
SHORTENED = "… the middle of this log was left out: it had grown beyond {size:,} bytes …\n"
#: Results that are secret by what they are for, by the module's name: the keys of an endpoint.
SECRET_RESULTS = {"slurp": ("content",)}
#: Of a result: the arguments, and what is told otherwise.
LEFT_OUT = ("invocation", "exception", "changed", "failed")
_COLOUR = re.compile("\033\\[[0-9;?]*[A-Za-z]")


class RunLog:
    """The log of one run, of this process and those that come after it. path: a file that is there."""

    def __init__(self, path: Path, *, most: int = MOST_BYTES, head: int = HEAD_BYTES) -> None:
        self._path, self._most, self._head = path, most, head
        self._secrets: set[str] = set()
        self._lock = threading.Lock()

    def learn(self, secrets: Iterable[str]) -> None:
        """From now on these are replaced."""
        self._secrets |= set(secrets)

    def masked(self, text: str) -> str:
        """The text as the log, or a terminal, may have it."""
        plain = mask(_COLOUR.sub("", text), self._secrets)
        return "\n".join(printable(line.expandtabs()) for line in plain.split("\n"))

    def write(self, text: str) -> str:
        """Append a text; what was written. Raises OSError."""
        told = self.masked(text).strip("\n")
        stamp = time.strftime("%H:%M:%S ")
        lines = "".join(f"{stamp}{line}".rstrip() + "\n" for line in told.split("\n"))
        with self._lock:
            # Never made here: who made it made it for its user alone.
            with os.fdopen(os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW), "ab") as stream:
                stream.write(lines.encode("utf-8", "backslashreplace"))
                size = stream.tell()
            if size > self._most:
                self._shorten()
        return told

    def _shorten(self) -> None:
        """Leave the middle out, so that the file is half as long as it may be."""
        whole = self._path.read_bytes()
        head = whole[: whole.rfind(b"\n", 0, self._head) + 1]
        begin = len(whole) - max(0, self._most // 2 - len(head))
        tail = whole[whole.find(b"\n", begin) + 1 :]
        note = SHORTENED.format(size=self._most).encode()
        new = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        new.touch(0o600)
        new.write_bytes(head.replace(note, b"") + note + tail.replace(note, b""))
        new.replace(self._path)


def _named(value: Any) -> Any:
    """A plain value in which what is called a secret is hidden, however short it is."""
    if isinstance(value, Mapping):
        return {
            key: MASK if isinstance(one, str) and one and tells(str(key)) else _named(one)
            for key, one in value.items()
        }
    return [_named(one) for one in value] if isinstance(value, (list, tuple)) else value


def result_text(action: str, result: Mapping[str, Any], masked: Callable[[str], str]) -> str:
    """What a task returned, for a person: JSON, and a trace as it stands. masked: RunLog.masked.

    action: the module's name. What Ansible itself censors (no_log) has come censored.
    """
    hidden = SECRET_RESULTS.get(action, ())
    shown = {
        key: MASK if key in hidden else _named(value)
        for key, value in result.items()
        if not str(key).startswith("_ansible") and key not in LEFT_OUT
    }
    # Masked before it is cut: half of a secret would not be known for one.
    text = masked(json.dumps(shown, indent=1, ensure_ascii=False, sort_keys=True, default=str))
    if len(text) > MOST_OF_A_RESULT:
        text = f"{text[:MOST_OF_A_RESULT]}\n… {len(text) - MOST_OF_A_RESULT:,} more characters"
    return "" if text == "{}" else text
