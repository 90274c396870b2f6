"""lab-gpu: start the simulated hardware, break it, and set what the cards are doing."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from typing import Any, Dict, List, Optional

from .. import faults, paths, rig, state
from ..kernel import boot, firmware, log, pci


def main(arguments: Optional[List[str]] = None) -> int:
    """Parse and carry out; exit status 0, or 1 with the reason on stderr."""
    parser = argparse.ArgumentParser(prog="lab-gpu", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("boot", help="what the kernel does while the host starts (lab-gpu.service)")
    verbs.add_parser("faults", help="list the faults that can be told, and those in force")
    fault = verbs.add_parser("fault", help="break something; it stays so over reboots")
    fault.add_argument("name", choices=sorted(faults.KNOWN))
    fault.add_argument("--gpu", type=int, help="index of the card concerned (default: the last)")
    fault.add_argument("--version", help="beginning of the driver's versions concerned (default: all)")
    clear = verbs.add_parser("clear", help="end one fault, or all")
    clear.add_argument("name", nargs="?", choices=sorted(faults.KNOWN))
    load = verbs.add_parser("load", help="let a card work: memory in use, clocks up")
    load.add_argument("--gpu", type=int, action="append", help="index (repeatable; default: every card)")
    load.add_argument("--memory", type=int, default=0, metavar="MIB")
    load.add_argument("--pid", type=int, default=1, help="the process that is said to do it")
    load.add_argument("--process", default="VLLM::EngineCore")
    load.add_argument("--busy", action="store_true", help="computing: clocks and power go up")
    options = parser.parse_args(arguments)
    if options.verb == "faults":
        active = faults.read()
        for name, meaning in faults.KNOWN.items():
            print("%s %-24s %s" % ("*" if name in active else " ", name, meaning))
        return 0
    if os.geteuid() != 0 and paths.ON_HOST:
        print("lab-gpu: %s needs root" % options.verb, file=sys.stderr)
        return 1
    if options.verb == "boot":
        try:
            problems = boot.boot()
        except subprocess.CalledProcessError as error:
            print(
                "lab-gpu: `%s` failed with status %d: this container may not mount (it needs CAP_SYS_ADMIN)"
                % (" ".join(error.cmd), error.returncode),
                file=sys.stderr,
            )
            return 1
        for problem in problems:
            print(problem, file=sys.stderr)
    elif options.verb == "fault":
        values = [value for value in (options.gpu, options.version) if value is not None]
        faults.tell(options.name, values[0] if values else True)
        firmware.show()
        if options.name == "gpu-lost":
            _fall_off_the_bus()
    elif options.verb == "clear":
        faults.clear(options.name)
        firmware.show()
    else:
        _load(
            options.gpu,
            {"busy": options.busy, "memory": options.memory, "pid": options.pid, "process": options.process},
        )
    return 0


def _fall_off_the_bus() -> None:
    cards = rig.load().cards
    lost = faults.card("gpu-lost", len(cards))
    if lost is not None:
        place = cards[lost].bus_id
        for text in (
            "NVRM: GPU at PCI:%s: %s" % (place[:-2], cards[lost].uuid),
            "NVRM: Xid (PCI:%s): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
            % place[:-2],
            "NVRM: GPU %s: GPU has fallen off the bus." % place,
        ):
            log.tell(text, log.ERR)


def _load(indices: Optional[List[int]], work: Dict[str, Any]) -> None:
    with state.change() as now:
        for card in rig.load().cards:
            if indices is None or card.index in indices:
                now["load"][card.uuid] = dict(work)
                pci.add(card, card.pcie_generation if work["busy"] else 1)
