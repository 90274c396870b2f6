"""The linters, each over the whole house."""

import subprocess
import sys
from pathlib import Path

import pytest

from boxwright.cli import molecule
from boxwright.cli.ansible_run import ROOT

PROGRAMS = Path(sys.executable).parent
LINTERS = {
    "ruff": [PROGRAMS / "ruff", "check", "."],
    "format": [PROGRAMS / "ruff", "format", "--check", "."],
    "mypy": [PROGRAMS / "mypy"],
    "yamllint": [
        PROGRAMS / "yamllint",
        "--strict",
        "-c",
        "tests/yamllint.yml",
        "playbooks",
        "roles",
        "inventory",
        "tests",
        "boxwright",
    ],
    "ansible-lint": [
        PROGRAMS / "ansible-lint",
        "--offline",
        "--strict",
        "--profile",
        "production",
        "-c",
        "tests/ansible-lint.yml",
    ],
    "shell": ["sh", "-n", "invoke"],
    "schema": [PROGRAMS / "invoke", "schema", "--check"],
}


@pytest.mark.parametrize("name", LINTERS)
def test_clean(name):
    done = subprocess.run(
        [str(word) for word in LINTERS[name]],
        cwd=ROOT,
        env=molecule.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
