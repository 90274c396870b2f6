"""The environments of the tools: found by their stamp, made with pip, its failures in words."""

import json
import sys
from types import SimpleNamespace

import pytest
from ansible.module_utils import python_environment
from ansible.module_utils.command import Result
from ansible.module_utils.python_environment import EnvironmentFailed, Step, Wanted


def wanted(tmp_path, **changes):
    fields = {
        "path": str(tmp_path / "venvs" / "tool"),
        "steps": [Step(["tool==1.0"], [])],
        "constraints": ["dep==2"],
    }
    return Wanted(**{**fields, **changes})


def test_found_again(tmp_path, prepared):
    prepared(wanted(tmp_path))
    assert python_environment.installed(wanted(tmp_path)) == {"tool": "1.0"}
    assert python_environment.ensure(wanted(tmp_path), lambda stage: None) == {"tool": "1.0"}


@pytest.mark.parametrize(
    "changes",
    [
        {"steps": [Step(["tool==1.1"], [])]},
        {"constraints": ["dep==3"]},
        {"steps": [Step(["tool==1.0"], ["--no-deps"])]},
    ],
)
def test_made_anew_when_declared_otherwise(tmp_path, prepared, changes):
    prepared(wanted(tmp_path))
    assert python_environment.installed(wanted(tmp_path, **changes)) is None


def test_where_packages_come_from_makes_no_difference(tmp_path, prepared):
    prepared(wanted(tmp_path))
    assert python_environment.installed(wanted(tmp_path, index_url="http://other/simple")) is not None


def test_gone_interpreter(tmp_path, prepared):
    prepared(wanted(tmp_path))
    (tmp_path / "venvs" / "tool" / "bin" / "python").unlink()
    (tmp_path / "venvs" / "tool" / "bin" / "python").symlink_to("/usr/bin/python2.5")
    assert python_environment.installed(wanted(tmp_path)) is None


def test_real_environment(tmp_path):
    """A real venv and a real pip, with nothing to install: no index is asked."""
    stages = []
    empty = wanted(tmp_path, steps=[])
    packages = python_environment.ensure(empty, stages.append)
    assert "pip" in packages
    assert stages == ["making the tool environment"]
    stamp = json.loads((tmp_path / "venvs" / "tool" / python_environment.STAMP).read_text())
    assert stamp["packages"] == packages
    assert python_environment.ensure(empty, stages.append) == packages
    assert len(stages) == 1


def test_no_room(tmp_path):
    with pytest.raises(EnvironmentFailed, match="the tool environment"):
        python_environment.ensure(wanted(tmp_path, size=10**18), lambda stage: None)


def test_settings_of_pip(tmp_path):
    settings = python_environment.pip_environment(
        wanted(
            tmp_path,
            index_url="http://user:secret@depot.example:8080/simple/",
            extra_index_url="https://wheels.example/cu129",
            proxy="http://proxy:3128",
        )
    )
    assert settings["PIP_INDEX_URL"] == "http://user:secret@depot.example:8080/simple/"
    assert settings["PIP_EXTRA_INDEX_URL"] == "https://wheels.example/cu129"
    assert settings["PIP_TRUSTED_HOST"] == "depot.example:8080"
    assert settings["https_proxy"] == "http://proxy:3128"
    assert "PIP_PROXY" not in settings, "it would go before no_proxy"
    assert "PIP_INDEX_URL" not in python_environment.pip_environment(wanted(tmp_path))


@pytest.mark.parametrize(
    ("rc", "output", "words"),
    [
        (
            1,
            "ERROR: Could not find a version\nERROR: No matching distribution found for dep==2",
            "has no dep==2 for Python",
        ),
        (
            1,
            "... [SSL: CERTIFICATE_VERIFY_FAILED] ...",
            "certificate of http://depot.example/simple is not trusted",
        ),
        (1, "NameResolutionError: Failed to resolve 'depot.example'", "does not resolve"),
        (
            1,
            "WARNING: Retrying ... Connection refused\nERROR: No matching distribution found for tool==1.0",
            "cannot be reached",
        ),
        (
            1,
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
            "disk is full",
        ),
        (124, "", "did not end within 3600 s"),
        (1, "collecting\nERROR: something else", "ERROR: something else"),
    ],
)
def test_failures_of_pip(tmp_path, rc, output, words):
    place = wanted(tmp_path, index_url="http://user:secret@depot.example/simple")
    output += "\nLooking in indexes: http://user:secret@depot.example/simple"
    told = python_environment.pip_failure(place, place.steps[0], Result(rc, "", output))
    assert words in told
    assert "tool==1.0" in told
    assert "secret" not in told


def test_versions_are_part_of_what_it_is(tmp_path, monkeypatch):
    before = wanted(tmp_path).digest()
    monkeypatch.setattr(sys, "version_info", (3, 99, 0))
    assert wanted(tmp_path).digest() != before


#: Red Hat's release 9: its own Python is 3.9, and the tools' releases want 3.10.
ROCKY = 'ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.6"\n'


@pytest.fixture
def rocky(tmp_path, monkeypatch):
    """A host with Python 3.9; dnf(script) says what its dnf does, newer() puts a Python 3.12 there."""
    root, programs = tmp_path / "root", tmp_path / "bin"
    for folder in (root / "etc", root / "usr/bin", programs):
        folder.mkdir(parents=True)
    (root / "etc/os-release").write_text(ROCKY)
    monkeypatch.setattr(sys, "version_info", (3, 9, 21))
    monkeypatch.setattr(python_environment, "ROOT", str(root))
    monkeypatch.setattr(python_environment.dnf, "LOCKS", ())
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")

    def dnf(script):
        (programs / "dnf").write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n{script}\n')
        (programs / "dnf").chmod(0o755)

    def newer(version="3.12"):
        (root / f"usr/bin/python{version}").symlink_to(sys.executable)

    return SimpleNamespace(dnf=dnf, newer=newer, root=root, asked=tmp_path / "asked")


def test_a_newer_python_is_installed_beside_one_that_is_too_old(tmp_path, rocky):
    rocky.dnf(f"ln -s {sys.executable} {rocky.root}/usr/bin/python3.12")
    stages = []
    packages = python_environment.ensure(wanted(tmp_path, steps=[]), stages.append)
    assert "pip" in packages
    assert stages == ["making the tool environment", "installing python3.12"]
    assert rocky.asked.read_text() == "-y -q install python3.12\n"
    assert python_environment.ensure(wanted(tmp_path, steps=[]), stages.append) == packages
    assert len(stages) == 2


def test_a_newer_python_that_is_there_is_taken(tmp_path, rocky):
    rocky.newer("3.11")
    assert python_environment.interpreter().version == (3, 11)
    before = wanted(tmp_path).digest()
    rocky.newer("3.12")
    assert python_environment.interpreter().version == (3, 12)
    assert wanted(tmp_path).digest() != before


def test_a_newer_python_that_cannot_be_had(tmp_path, rocky):
    rocky.dnf("echo 'Error: Unable to find a match: python3.12' >&2; exit 1")
    with pytest.raises(EnvironmentFailed, match=r"own Python is 3\.9.*need 3\.10.*Unable to find a match"):
        python_environment.ensure(wanted(tmp_path), lambda stage: None)


def test_without_dnf_a_python_that_is_too_old_is_told(tmp_path, rocky):
    (rocky.root / "etc/os-release").write_text("ID=debian\nVERSION_ID=11\n")
    with pytest.raises(EnvironmentFailed, match=r"install one as /usr/bin/python3\.12"):
        python_environment.ensure(wanted(tmp_path), lambda stage: None)


def test_the_own_python_makes_environments_where_it_is_new_enough(tmp_path):
    assert python_environment.interpreter() == (sys.executable, sys.version_info[:2])
