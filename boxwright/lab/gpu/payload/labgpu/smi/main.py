"""The command line of nvidia-smi."""

from __future__ import annotations

import contextlib
import sys
from typing import Dict, Iterator, List, Optional

from . import change, listing, query, rendering, topology
from .driver import Driver, Failure, connect, select
from .fields import NAMES

HELP = """NVIDIA System Management Interface -- v{version}

NVSMI provides monitoring information for Tesla and select Quadro devices.
This is the simulated one of a lab host: it knows -L, -q [-x] [-d TYPE], -i, --version, --query-gpu,
--query-compute-apps, --format, topo -m, topo -p2p, nvlink -s, -pm, -lgc, -rgc, -lmc, -rmc, -pl and
--error-on-warning.
"""
#: Options with a value: every spelling, and what it means.
VALUED = {
    "-i": "id",
    "--id": "id",
    "-d": "display",
    "--display": "display",
    "--format": "format",
    "-f": "file",
    "--filename": "file",
    "--query-gpu": "query-gpu",
    "--query-compute-apps": "query-apps",
    "-pm": "persistence",
    "--persistence-mode": "persistence",
    "-lgc": "lock",
    "--lock-gpu-clocks": "lock",
    "-lmc": "memory-lock",
    "--lock-memory-clocks": "memory-lock",
    "-pl": "power",
    "--power-limit": "power",
}
PLAIN = {
    "-L": "list",
    "--list-gpus": "list",
    "-q": "query",
    "--query": "query",
    "-x": "xml",
    "--xml-format": "xml",
    "-u": "unit",
    "--version": "version",
    "-rgc": "unlock",
    "--reset-gpu-clocks": "unlock",
    "-rmc": "memory-unlock",
    "--reset-memory-clocks": "memory-unlock",
    "--error-on-warning": "error-on-warning",
    "-eow": "error-on-warning",
}
CHANGES = ("persistence", "lock", "unlock", "memory-lock", "memory-unlock", "power")


def main(library: str, arguments: Optional[List[str]] = None) -> int:
    """Run nvidia-smi for a library of that driver version; returns the exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if {"-h", "--help"} & set(arguments[:1]):
        print(HELP.format(version=library))
        return 0
    if arguments[:1] == ["--help-query-gpu"]:
        print('List of valid properties to query for the switch "--query-gpu=":\n')
        print("\n".join('"%s"' % name for name in NAMES))
        return 0
    try:
        driver = connect(library)
        with _output(arguments):
            return _dispatch(driver, arguments)
    except Failure as failure:
        print(failure)
        return failure.status


@contextlib.contextmanager
def _output(arguments: List[str]) -> Iterator[None]:
    """Send the answer to the file of -f, or to stdout."""
    for position, word in enumerate(arguments):
        option, _, value = word.partition("=")
        if VALUED.get(option) == "file":
            target = value or "".join(arguments[position + 1 : position + 2])
            with open(target, "w", encoding="utf-8") as stream, contextlib.redirect_stdout(stream):
                yield
            return
    yield


def _parse(arguments: List[str]) -> Dict[str, str]:
    found: Dict[str, str] = {}
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        option, equals, value = word.partition("=")
        if option in VALUED:
            if not equals:
                if not rest:
                    raise Failure(
                        255,
                        "ERROR: Option %s is missing its value. Please run 'nvidia-smi -h' for help.\n"
                        % option,
                    )
                value = rest.pop(0)
            found[VALUED[option]] = value
        elif word in PLAIN:
            found[PLAIN[word]] = ""
        else:
            raise Failure(2, "ERROR: Option %s is not recognized. Please run 'nvidia-smi -h'.\n" % word)
    return found


def _dispatch(driver: Driver, arguments: List[str]) -> int:
    if arguments[:1] == ["topo"]:
        return _topo(driver, arguments[1:])
    if arguments[:1] == ["nvlink"]:
        options = arguments[1:]
        wanted = options[options.index("-i") + 1] if "-i" in options[:-1] else None
        return topology.nvlink(driver, select(driver, wanted))
    given = _parse(arguments)
    changes = [name for name in CHANGES if name in given]
    if len(changes) > 1:
        raise Failure(2, "Input combination for device modification is not valid.")
    if "list" in given:
        return listing.cards(driver)
    if "version" in given:
        return listing.versions(driver)
    cards = select(driver, given.get("id"))
    if changes:
        return change.apply(cards, changes[0], given[changes[0]], "error-on-warning" in given)
    if "query-gpu" in given:
        return query.gpus(driver, cards, given["query-gpu"], given.get("format"))
    if "query-apps" in given:
        return query.apps(driver, cards, given["query-apps"], given.get("format"))
    if "query" in given or "xml" in given:
        return rendering.show(driver, cards, given.get("display"), "xml" in given)
    return listing.table(driver, cards)


def _topo(driver: Driver, arguments: List[str]) -> int:
    if arguments == ["-m"] or arguments == ["--matrix"]:
        return topology.matrix(driver)
    if (
        len(arguments) == 2
        and arguments[0] in ("-p2p", "--p2pstatus")
        and arguments[1] in ("r", "w", "n", "a", "p")
    ):
        return topology.peers(driver, arguments[1])
    raise Failure(
        2,
        "ERROR: Option %s is not recognized. Please run 'nvidia-smi topo -h'.\n"
        % (arguments[0] if arguments else "topo"),
    )
