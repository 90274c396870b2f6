"""The kernel's messages about its cards, for the dmesg of a lab host."""

from __future__ import annotations

import json
import os
import time
from typing import Dict, List

from .. import paths

FILE = paths.at("/run/lab-gpu/kernel.log")
ERR, WARNING, INFO = 3, 4, 6


def tell(text: str, level: int = INFO) -> None:
    """Add one message, with the time since boot in seconds."""
    os.makedirs(os.path.dirname(FILE), exist_ok=True)
    with open(FILE, "a", encoding="utf-8") as stream:
        stream.write(json.dumps({"seconds": uptime(), "level": level, "text": text}) + "\n")


def messages() -> List[Dict[str, object]]:
    """Every message since the host started, oldest first."""
    if not os.path.exists(FILE):
        return []
    with open(FILE, encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def wall_clock(seconds: float) -> str:
    """When a message came, as dmesg -T writes it."""
    return time.strftime("%a %b %e %H:%M:%S %Y", time.localtime(time.time() - uptime() + seconds))


def uptime() -> float:
    """Seconds since the kernel started."""
    with open("/proc/uptime", encoding="utf-8") as stream:
        return float(stream.read().split()[0])
