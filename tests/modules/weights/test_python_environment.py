"""The environments of the tools: found by their stamp, made with pip, its failures in words."""

import json
import sys

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
    assert settings["PIP_PROXY"] == "http://proxy:3128"
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
