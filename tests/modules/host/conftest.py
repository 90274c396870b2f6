"""Hosts in small for the modules of packages, kernel module and card limits."""

import importlib
import importlib.util
import json
import sys
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args

spec = importlib.util.spec_from_file_location("host_doubles", Path(__file__).with_name("doubles.py"))
doubles = importlib.util.module_from_spec(spec)
sys.modules["host_doubles"] = doubles
spec.loader.exec_module(doubles)


@pytest.fixture(scope="session")
def repository(tmp_path_factory):
    """The packages that a new recording of dnf is made over."""
    return made(tmp_path_factory, "dnf_repository")


@pytest.fixture(scope="session")
def ubuntu_repository(tmp_path_factory):
    """The same of apt."""
    return made(tmp_path_factory, "ubuntu_repository")


def made(places, name):
    place = places.mktemp("repository")
    if doubles.load("recordings").RECORDING:
        doubles.load(name).make(place)
    return place


@pytest.fixture
def root(tmp_path):
    """The root directory of a host in small."""
    place = tmp_path / "root"
    place.mkdir()
    return place


@pytest.fixture
def module(capsys, monkeypatch, root):
    """module("package_source", defaults) -> call(check=…, **arguments), run on `root`: its result."""

    def prepare(module_name, **defaults):
        code = importlib.import_module(f"boxwright.ansible.modules.{module_name}")
        monkeypatch.setattr(code, "ROOT", str(root))

        def call(check=False, **arguments):
            words = {**defaults, **arguments, "_ansible_check_mode": check}
            with patch_module_args(words), pytest.raises(SystemExit):
                code.main()
            return json.loads(capsys.readouterr().out.splitlines()[-1])

        return call

    return prepare
