"""What the simulated kernel and driver remember until the next reboot: /run/lab-gpu/state.json.

{"modules": {NAME: {"version", "license", "initialized"}}, "cards": {UUID: {"persistence", "clocks",
"memory_clocks", "power_limit"}}, "load": {UUID: {"busy", "memory"}}}
Clocks are [lowest, highest] in MHz, power_limit is in W, memory in MiB.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from typing import Any, Dict, Iterator

from . import files, paths

State = Dict[str, Dict[str, Any]]


def read() -> State:
    """The present state. It may be read where it cannot be changed, as inside a container."""
    document: State = files.read_json(paths.STATE) or {}
    for part in ("modules", "cards", "load"):
        document.setdefault(part, {})
    return document


@contextlib.contextmanager
def change() -> Iterator[State]:
    """The state, to be changed in place by one program at a time; it is written when the block ends well."""
    os.makedirs(os.path.dirname(paths.STATE), exist_ok=True)
    with open(paths.STATE + ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        state = read()
        yield state
        files.write(paths.STATE, json.dumps(state, indent=1, sort_keys=True) + "\n")
