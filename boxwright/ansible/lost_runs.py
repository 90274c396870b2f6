"""Ends of runs whose box went away: kept on this machine until the box can have them.

The callback sees that a host went away and keeps the line here; the next run that begins on the host takes it
there, before its own first line. Until then `history` reads it from here.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from boxwright.ansible import state

#: Lines of one host that are kept, from the end.
MOST = 20


def place(host: str, variables: Mapping[str, Any]) -> str:
    """What tells one box from another of the same name: its name, its address and port."""
    words = [host, *(str(variables.get(name) or "") for name in ("ansible_host", "ansible_port"))]
    return hashlib.sha256(json.dumps(words).encode()).hexdigest()[:24]


def keep(where: str, line: Mapping[str, Any]) -> None:
    """Keep the end of a run. Raises OSError."""
    file = _file(where)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = file.with_name(f".{file.name}.{os.getpid()}")
    lines = [json.dumps(one, sort_keys=True) + "\n" for one in [*kept(where), line][-MOST:]]
    new.touch(0o600)
    new.write_text("".join(lines), encoding="ascii")
    new.replace(file)


def kept(where: str) -> list[dict[str, Any]]:
    """The ends that the host has not had yet; what is none of ours is left out."""
    try:
        text = _file(where).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    found = []
    for line in text.splitlines():
        try:
            one = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(one, dict) and one.get("event") == "ended" and isinstance(one.get("run"), str):
            found.append(one)
    return found


def handed_over(where: str) -> None:
    """The host has had them."""
    _file(where).unlink(missing_ok=True)


def _file(where: str) -> Path:
    return state.directory("history") / f"{where}.jsonl"
