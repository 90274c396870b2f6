"""Running a role's molecule scenario, and seeing that its verify can fail."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from boxwright.errors import EXIT_BAD_INPUT, UserError
from boxwright.texts import printable

ROOT = Path(__file__).resolve().parents[2]
#: molecule's commands that work on a scenario.
COMMANDS = (
    "test", "syntax", "create", "prepare", "check", "converge", "idempotence", "side-effect", "verify",
    "cleanup", "destroy", "list", "login", "matrix", "reset",
)  # fmt: skip
BASE = ROOT / "tests" / "molecule" / "base.yml"


def roles_with_scenarios() -> list[str]:
    """The names of the roles that have a default scenario, sorted."""
    return sorted(path.parents[2].name for path in ROOT.glob("roles/*/molecule/default/molecule.yml"))


def environment() -> dict[str, str]:
    """The environment of a scenario: the project's root and the virtual environment's programs first."""
    programs = str(Path(sys.executable).parent)
    return dict(
        os.environ,
        BOXWRIGHT_ROOT=str(ROOT),
        PATH=f"{programs}:{os.environ['PATH']}",
        ANSIBLE_CALLBACK_RESULT_FORMAT="yaml",
        ANSIBLE_HOME=str(ROOT / ".lab" / "ansible"),
    )


def check(role: str, command: str) -> None:
    """Raises UserError for a role without a scenario, or a command that is none of molecule's."""
    for what, name, known in (
        ("role", role, roles_with_scenarios()),
        ("molecule command", command, COMMANDS),
    ):
        if name not in known:
            raise UserError(
                f'there is no {what} "{printable(name)}"',
                ways_out=("one of: " + ", ".join(known),),
                status=EXIT_BAD_INPUT,
            )


def run(role: str, command: str, *options: str) -> int:
    """Run a molecule command ("test", "converge", …) on one role; its exit status."""
    check(role, command)
    argv = ["molecule", "--base-config", str(BASE), command, *options]
    return subprocess.run(argv, cwd=ROOT / "roles" / role, env=environment(), check=False).returncode


def play(role: str, playbook: str) -> int:
    """Run a playbook of the role's scenario on its host (break.yml); the exit status of ansible-playbook."""
    scenario = ROOT / "roles" / role / "molecule" / "default"
    argv = ["ansible-playbook", "--inventory", str(scenario / "inventory"), str(scenario / playbook)]
    return subprocess.run(
        argv, cwd=ROOT, env=dict(environment(), ANSIBLE_CONFIG=str(ROOT / "ansible.cfg")), check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(max(run(sys.argv[1], command) for command in sys.argv[2:] or ["test"]))
