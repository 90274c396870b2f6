"""nvidia-persistenced: holds every card open, so that settings outlive the program that made them."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from typing import List, Optional

from .. import files, paths, rig, state
from ..kernel import modules


def main(version: str, arguments: Optional[List[str]] = None) -> int:
    """Start the daemon of that driver version; the call returns when it is ready, as forking services do."""
    parser = argparse.ArgumentParser(prog="nvidia-persistenced", allow_abbrev=False)
    parser.add_argument("-V", "--verbose", action="store_true")
    parser.add_argument("-u", "--user")
    parser.add_argument("-g", "--group")
    parser.add_argument("--persistence-mode", action="store_true", default=True)
    parser.add_argument("--no-persistence-mode", action="store_false", dest="persistence_mode")
    parser.add_argument("--uvm-persistence-mode", action="store_true")
    parser.add_argument(
        "-v", "--version", action="version", version="nvidia-persistenced:  version " + version
    )
    options = parser.parse_args(arguments)
    try:
        modules.load("nvidia")
        if options.uvm_persistence_mode:
            modules.load("nvidia-uvm")
    except (FileNotFoundError, modules.KernelError):
        return _fail()
    module = modules.loaded()["nvidia"]
    if module["version"] != version or not module["initialized"]:
        return _fail()
    if os.fork():
        while not modules.persistenced():
            time.sleep(0.01)
        return 0
    os.setsid()
    _persist(options.persistence_mode)
    files.write(paths.PERSISTENCED_PID, "%d\n" % os.getpid())
    signal.signal(signal.SIGTERM, _stop)
    while True:
        signal.pause()


def _fail() -> int:
    print("nvidia-persistenced failed to initialize. Check syslog for more details.", file=sys.stderr)
    return 1


def _persist(wanted: bool) -> None:
    with state.change() as now:
        for card in rig.load().cards:
            if wanted:
                now["cards"].setdefault(card.uuid, {})["persistence"] = True
            else:
                now["cards"].pop(card.uuid, None)


def _stop(_signal: int, _frame: object) -> None:
    """Let go of the cards: what was set on them is gone, as when the last program closes a card."""
    _persist(False)
    os.unlink(paths.PERSISTENCED_PID)
    sys.exit(0)
