"""The wrapper and the controller on a machine with Python and nothing else: Debian 13's, newer Ansible."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.lab

ROOT = Path(__file__).resolve().parents[2]
LAB = [sys.executable, "-m", "boxwright.lab"]


@pytest.fixture(scope="module")
def machine(simulated):
    """A simulated machine without the venv module, holding a clone in a directory with a space."""
    subprocess.run([*LAB, "up", "fresh", "--rig", "none"], cwd=ROOT, check=True, timeout=900)
    host = simulated("fresh")
    host.do("apt-get", "remove", "-y", "-q", "python3-venv", "python3.13-venv", check=False)
    host.do("mkdir", "-p", "/srv/a clone")
    tracked = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, check=True, capture_output=True
    ).stdout
    archive = subprocess.run(
        ["tar", "--null", "-T", "-", "-c"], cwd=ROOT, check=True, input=tracked, capture_output=True
    ).stdout
    subprocess.run(
        ["docker", "exec", "-i", host.container, "tar", "-x", "-C", "/srv/a clone"], check=True, input=archive
    )
    yield host
    subprocess.run([*LAB, "down", "fresh"], cwd=ROOT, check=True, timeout=120)


def test_first_command_sets_itself_up(machine):
    said = machine.do("/srv/a clone/invoke", "validate", timeout=600)
    assert "nothing wrong" in said
    assert "core 2.2" in machine.do("/srv/a clone/.venv/bin/ansible", "--version")


def test_second_command_is_ready(machine):
    assert "preparing" not in machine.do("/srv/a clone/invoke", "validate", timeout=60)


def test_stale_environment_is_refreshed(machine):
    machine.do("sh", "-c", "echo '# changed' >> '/srv/a clone/pyproject.toml'")
    assert "nothing wrong" in machine.do("/srv/a clone/invoke", "validate", timeout=600)


def test_pure_parts_pass_there(machine):
    """The unit tests on the newer Python and the newer Ansible."""
    words = ["test", "--level", "unit", "--name", "not test_browser"]  # no browser is installed there
    said = machine.do("/srv/a clone/invoke", *words, timeout=1200)
    assert " passed" in said
