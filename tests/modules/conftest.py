"""Modules and their helpers as a host has them: helpers are found under ansible.module_utils."""

import importlib
import json
import os
from pathlib import Path

import ansible.module_utils
import pytest
from ansible.module_utils.testing import patch_module_args

ROOT = Path(__file__).resolve().parents[2]
for directory in ("boxwright/ansible/module_utils", "boxwright/facts/parsers"):
    if str(ROOT / directory) not in ansible.module_utils.__path__:
        ansible.module_utils.__path__.append(str(ROOT / directory))


@pytest.fixture(autouse=True)
def own_environment():
    """What a module makes of its environment ends with it, as its process does on a host."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(autouse=True)
def on_a_host(monkeypatch):
    """Warnings go into the result, as on a host, whatever earlier tests made of this process."""
    monkeypatch.setattr("ansible.module_utils._internal.is_controller", False, raising=False)


@pytest.fixture
def run_module(capsys):
    """Run a module of ours in this process: run_module(name, check=…, diff=…, **arguments) -> its result."""

    def call(name, *, check=False, diff=False, **arguments):
        module = importlib.import_module(f"boxwright.ansible.modules.{name}")
        arguments = {**arguments, "_ansible_check_mode": check, "_ansible_diff": diff}
        with patch_module_args(arguments), pytest.raises(SystemExit):
            module.main()
        return json.loads(capsys.readouterr().out.splitlines()[-1])

    return call
