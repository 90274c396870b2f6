"""dmesg of a lab host: the simulated kernel's messages, and not the machine's."""

from __future__ import annotations

import argparse
from typing import List, Optional

from ..kernel import log

LEVELS = ("emerg", "alert", "crit", "err", "warn", "notice", "info", "debug")


def main(arguments: Optional[List[str]] = None) -> int:
    """`dmesg [-T] [-l LEVEL,…] [-t]`; other options of dmesg change nothing here."""
    parser = argparse.ArgumentParser(prog="dmesg", allow_abbrev=False)
    parser.add_argument("-T", "--ctime", action="store_true")
    parser.add_argument("-t", "--notime", action="store_true")
    parser.add_argument("-l", "--level", default="")
    options, _ = parser.parse_known_args(arguments)
    wanted = [LEVELS.index(name) for name in options.level.split(",") if name in LEVELS]
    for message in log.messages():
        seconds, level = float(str(message["seconds"])), int(str(message["level"]))
        if wanted and level not in wanted:
            continue
        stamp = "" if options.notime else "[%12.6f] " % seconds
        print(("[%s] " % log.wall_clock(seconds) if options.ctime else stamp) + str(message["text"]))
    return 0
