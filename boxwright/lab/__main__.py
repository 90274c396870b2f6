"""The lab's own command line: python -m boxwright.lab up NAME… | down [NAME…] | engine RELEASE | status."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence

from boxwright import lab
from boxwright.errors import EXIT_FAILED, UserError
from boxwright.lab import images, rigs
from boxwright.lab.depot import SERVICES
from boxwright.lab.store import environment


def main(arguments: Sequence[str]) -> int:
    """Run one command; its exit status."""
    options = _parser().parse_args(arguments)
    try:
        if options.command == "up":
            requests = [lab.HostRequest(name, rig=options.rig, suite=options.suite) for name in options.names]
            lab.up(requests, report=_say)
        elif options.command == "down":
            lab.down(options.names or None, report=_say, cache=options.cache)
        elif options.command == "engine":
            lab.earlier_engine(options.release, report=_say)
        elif options.command == "depot":
            lab.control_depot(options.action, options.service)
        else:
            found = lab.status()
            print(json.dumps(found.to_json(), indent=2) if options.json else found.table())
    except UserError as error:
        print(error, file=sys.stderr)
        return error.status
    except BrokenPipeError:  # whoever read the lines has seen enough
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123,SIM115 - the interpreter flushes it at its end
        return EXIT_FAILED
    except KeyboardInterrupt:
        print("stopped; the next `up` goes on from here", file=sys.stderr)
        return 130
    return 0


def _say(line: str) -> None:
    print(line, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m boxwright.lab", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="have these simulated hosts run")
    up.add_argument("names", nargs="+", metavar="NAME")
    up.add_argument("--rig", default="rtx5090", choices=rigs.names(), help="the cards (default: %(default)s)")
    up.add_argument("--suite", default="trixie", choices=images.SUITES, help="Debian release (%(default)s)")
    down = commands.add_parser("down", help="remove these hosts; without names, the whole lab")
    down.add_argument("names", nargs="*", metavar="NAME")
    down.add_argument("--cache", action="store_true", help="remove the cache of images and models, too")
    engine = commands.add_parser(
        "engine", help="have an earlier release of the engine in the registry, too, to upgrade from it"
    )
    engine.add_argument("release", choices=environment.EARLIER)
    depot = commands.add_parser(
        "depot", help="stop or start one service of the depot, to see what its loss does"
    )
    depot.add_argument("action", choices=("start", "stop", "restart"))
    depot.add_argument("service", choices=sorted(SERVICES))
    status = commands.add_parser("status", help="show what runs")
    status.add_argument("--json", action="store_true")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
