"""nvidia-modprobe: loads the driver's modules and makes its device nodes, for users who may not."""

from __future__ import annotations

import argparse
from typing import List, Optional

from ..kernel import modules


def main(version: str, arguments: Optional[List[str]] = None) -> int:
    """`nvidia-modprobe [-c N]… [-u] [-m]`; exit status 1 when a module cannot be loaded."""
    parser = argparse.ArgumentParser(prog="nvidia-modprobe", allow_abbrev=False)
    parser.add_argument("-v", "--version", action="version", version="nvidia-modprobe:  version " + version)
    parser.add_argument("-c", "--create-nvidia-device-file", action="append", metavar="N")
    parser.add_argument("-u", "--unified-memory", action="store_true")
    parser.add_argument("-m", "--modeset", action="store_true")
    parser.add_argument("-s", "--nvswitch", action="store_true")
    options = parser.parse_args(arguments)
    wanted = ["nvidia"] + ["nvidia-uvm"] * options.unified_memory + ["nvidia-modeset"] * options.modeset
    try:
        for name in wanted:
            modules.load(name)
    except (FileNotFoundError, modules.KernelError):
        return 1
    return 0
