"""Running the project's own tests: what needs no host, what shares some, the whole way; all at once."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from boxwright.cli import molecule, second_checkout
from boxwright.cli.ansible_run import ROOT
from boxwright.cli.console import say
from boxwright.errors import EXIT_BAD_INPUT, EXIT_FAILED, UserError
from boxwright.texts import printable

#: What needs no host, what shares simulated ones, and what begins with no lab at all: they run beside each
#: other, the last in a checkout of its own.
PURE, ON_HOSTS, WHOLE_WAY = ("unit", "modules", "style"), ("roles", "faults"), ("e2e",)
LEVELS = (*PURE, *ON_HOSTS, *WHOLE_WAY)
#: What takes simulated hosts many minutes is run where it is asked for.
ON_REQUEST = (
    "kills", "upgrades", "engines", "weights", "tuning", "proxies", "hosts", "fleet", "drifts", "debian12",
)  # fmt: skip
#: What pytest is given for a level that is no folder of its own.
GIVEN = {
    "debian12": (
        "--suite=bookworm",
        *(
            f"tests/faults/test_{name}.py"
            for name in ("driver", "container_runtime", "access", "tuning_and_firewall")
        ),
    )
}
#: Exit statuses of pytest: the command line makes no sense, and no test was collected.
WRONG_USE, NOTHING_COLLECTED = 4, 5


def ensure_test_tools() -> None:
    """Install the test extra into this environment when pyproject.toml asks for something else."""
    stamp = Path(sys.prefix) / "boxwright-test-stamp"
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return
    say("boxwright: installing the test tools (once, about half a minute)")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-input",
            "--editable",
            f"{ROOT}[test]",
        ],
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise UserError(
            "the test tools could not be installed",
            why="\n".join(done.stderr.strip().splitlines()[-5:]),
            ways_out=("look at the network; PIP_INDEX_URL names another package index",),
        )
    stamp.write_text(wanted, encoding="utf-8")


def run(*, level: str | None = None, name: str | None = None, verbose: bool = False) -> None:
    """Run one level of tests, or all but those on request.

    Raises UserError for a level or a name that there is not.
    """
    if level is not None and level not in (*LEVELS, *ON_REQUEST):
        raise UserError(
            f'--level: there is no level "{printable(level)}"',
            status=EXIT_BAD_INPUT,
            ways_out=("one of: " + ", ".join((*LEVELS, *ON_REQUEST)),),
        )
    if name is not None and not name.strip():
        raise UserError(
            "--name needs a value, and none is there",
            status=EXIT_BAD_INPUT,
            ways_out=("a part of a test's or a file's name", "leave it out for all tests"),
        )
    ensure_test_tools()
    with ExitStack() as stack:
        # A part of the tests is not worth an environment of its own.
        second = None if level or name else stack.enter_context(second_checkout.second_checkout(ROOT))
        if level:
            commands = [_pytest([level], name, verbose=verbose)]
        elif second:
            commands = [
                _pytest(PURE, name, verbose=verbose),
                _elsewhere(second, WHOLE_WAY[0], verbose=verbose),
                _pytest(ON_HOSTS, name, verbose=verbose),
            ]
        else:
            commands = [_pytest(part, name, verbose=verbose) for part in (PURE, (*ON_HOSTS, *WHOLE_WAY))]
        statuses = _side_by_side(commands)
    if all(status in (NOTHING_COLLECTED, WRONG_USE) for status in statuses):
        raise UserError(
            f'no test has "{printable(name or "")}" in its name',
            status=EXIT_BAD_INPUT,
            ways_out=("a part of a test's or a file's name; with and, or, not between several",),
        )
    raise SystemExit(EXIT_FAILED if any(status not in (0, NOTHING_COLLECTED) for status in statuses) else 0)


@dataclass(frozen=True)
class Command:
    """What runs some levels, where, and with which environment."""

    argv: Sequence[str]
    cwd: Path
    environment: Mapping[str, str]


def _pytest(levels: Sequence[str], name: str | None, *, verbose: bool) -> Command:
    """What runs some levels in this checkout."""
    given = [word for level in levels for word in GIVEN.get(level, (f"tests/{level}",))]
    more = [*(["-v"] if verbose else []), *([f"-k{name}"] if name else [])]
    argv = [sys.executable, "-m", "pytest", *given, "--durations=15", *more]
    return Command(argv, ROOT, molecule.environment())


def _elsewhere(checkout: Path, level: str, *, verbose: bool) -> Command:
    """What runs a level in the second checkout, as a person there would."""
    argv = [str(checkout / "invoke"), "test", "--level", level, *(["--verbose"] if verbose else [])]
    return Command(argv, checkout, second_checkout.environment(str(Path(sys.executable).parent)))


def _side_by_side(commands: Sequence[Command]) -> list[int]:
    """Run them at once, give their statuses; the last one's output is seen as it comes, the others' after."""
    *quiet, shown = commands
    with ExitStack() as stack:
        said = [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in quiet]
        running = []
        for command, file in zip(quiet, said, strict=True):
            running.append(
                subprocess.Popen(
                    command.argv,
                    cwd=command.cwd,
                    env=command.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            )
            stack.callback(_end, running[-1])
        last = subprocess.run(shown.argv, cwd=shown.cwd, env=shown.environment, check=False).returncode
        statuses = [one.wait() for one in running]
        for file in said:
            file.seek(0)
            say(file.read().rstrip())
    return [*statuses, last]


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process that still runs, as after Ctrl-C, and what it has started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def role(name: str, command: str) -> None:
    """Run a molecule command on one role's scenario. Raises UserError for names that there are not."""
    molecule.check(name, command)
    ensure_test_tools()
    raise SystemExit(EXIT_FAILED if molecule.run(name, command) else 0)
