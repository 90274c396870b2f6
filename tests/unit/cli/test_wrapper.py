"""The wrapper's dead ends: it says what is missing and how to get it, and stops."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def clone(tmp_path):
    """A checkout whose path has a space, without .venv."""
    place = tmp_path / "a clone"
    place.mkdir()
    for name in ("invoke", "pyproject.toml", "README.md", "tasks.py"):
        shutil.copy(ROOT / name, place / name)
    return place


@pytest.fixture
def programs(tmp_path):
    """A directory of programs that is the whole PATH: coreutils, and what a test puts there."""
    place = tmp_path / "bin"
    place.mkdir()
    for name in [
        "cat",
        "cut",
        "sha256sum",
        "readlink",
        "dirname",
        "head",
        "mktemp",
        "mv",
        "rm",
        "tail",
        "env",
        "sh",
    ]:
        (place / name).symlink_to(shutil.which(name))
    return place


def script(place, name, text):
    (place / name).write_text(f"#!/bin/sh\n{text}\n")
    (place / name).chmod(0o755)


def run(clone, programs):
    return subprocess.run(
        [str(clone / "invoke"), "--list"],
        env={"PATH": str(programs)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_no_python(clone, programs):
    done = run(clone, programs)
    assert done.returncode == 1
    assert "Python 3.11 or newer is needed" in done.stderr
    assert "apt-get install python3" in done.stderr


def test_python_too_old(clone, programs):
    script(programs, "python3", "exit 1")
    done = run(clone, programs)
    assert done.returncode == 1
    assert "Python 3.11 or newer is needed" in done.stderr


#: A Python that is new enough and, as Debian ships it, has no venv module.
NO_VENV = """case "$*" in
    *_base_executable*) echo "$0" ;;
    *ensurepip*) exit 1 ;;
    *print*) echo 3.11 ;;
esac"""
#: A Python whose virtual environments have a pip without a network.
NO_NETWORK = """case "$*" in
    *_base_executable*) echo "$0" ;;
    "-m venv "*)
        mkdir -p "$3/bin"
        printf '#!/bin/sh\\necho no route to host >&2\\nexit 1\\n' >"$3/bin/python"
        chmod +x "$3/bin/python" ;;
esac"""


def test_no_venv_module_and_no_root(clone, programs):
    script(programs, "python3", NO_VENV)
    script(programs, "apt-get", "exit 99")
    script(programs, "id", "echo 1000")
    script(programs, "sudo", "exit 1")
    done = run(clone, programs)
    assert done.returncode == 1
    assert "sudo apt-get install python3.11-venv" in done.stderr


def test_apt_fails(clone, programs):
    script(programs, "python3", NO_VENV)
    script(programs, "apt-get", "echo Temporary failure resolving >&2; exit 100")
    script(programs, "id", "echo 0")
    done = run(clone, programs)
    assert done.returncode == 1
    assert "Temporary failure resolving" in done.stderr
    assert "could not be installed" in done.stderr


def test_no_network_for_pip(clone, programs):
    script(programs, "python3", NO_NETWORK)
    for name in ("mkdir", "chmod"):
        (programs / name).symlink_to(shutil.which(name))
    done = run(clone, programs)
    assert done.returncode == 1
    assert "no route to host" in done.stderr
    assert "PIP_INDEX_URL" in done.stderr
    assert not (clone / ".venv" / "boxwright-stamp").exists()


def test_a_working_environment_survives_a_failed_rebuild(clone, programs):
    script(programs, "python3", NO_NETWORK)
    for name in ("mkdir", "chmod"):
        (programs / name).symlink_to(shutil.which(name))
    (clone / ".venv").mkdir()
    (clone / ".venv" / "boxwright-stamp").write_text("of another Python\n")
    (clone / ".venv" / "kept").touch()
    assert run(clone, programs).returncode == 1
    assert (clone / ".venv" / "kept").exists()
    assert not (clone / ".venv.old").exists()


def test_an_active_environment_is_not_built_upon():
    """Inside an activated environment the wrapper finds the same Python as outside, and builds nothing."""
    stamp = ROOT / ".venv" / "boxwright-stamp"
    before = stamp.read_text()
    active = os.environ | {"PATH": f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run(
        [ROOT / "invoke", "--version"], env=active, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "preparing" not in done.stderr
    assert stamp.read_text() == before


def test_from_another_directory_and_through_a_link(tmp_path):
    link = tmp_path / "bw"
    link.symlink_to(ROOT / "invoke")
    done = subprocess.run(
        [str(link), "--list"], cwd=tmp_path, env=os.environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "provision" in done.stdout
