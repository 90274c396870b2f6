"""A host's programs in small: a directory for PATH whose programs share one state, a JSON file."""

import importlib.util
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import yaml

PROGRAMS = Path(__file__).with_name("programs")
STAND_IN = Path(__file__).with_name("stand_in.py")


def load(name):
    """The helper of that name beside this file."""
    spec = importlib.util.spec_from_file_location(f"host_{name}", Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def play(place, hosts, tasks, **environment):
    """Ansible with the house's own settings, over hosts by name with their variables; nothing gathered."""
    root = Path(__file__).resolve().parents[3]
    (place / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
    document = [{"hosts": "all", "gather_facts": False, "tasks": tasks}]
    (place / "play.yml").write_text(yaml.safe_dump(document))
    program = Path(sys.executable).with_name("ansible-playbook")
    settings = {"ANSIBLE_CONFIG": str(root / "ansible.cfg"), "ANSIBLE_STDOUT_CALLBACK": "default"}
    return subprocess.run(
        [program, "-i", place / "hosts.yml", place / "play.yml"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=root,
        env={**os.environ, **settings, **environment},
    )


def launcher(*words):
    """The text of a program that runs `words`, wherever they lie: no `#!` line holds a space in a path."""
    return f'#!/bin/sh\nexec {shlex.join(map(str, words))} "$0" "$@"\n'


class World:
    """Programs on PATH over one state. source: a file of programs/ with run(name, words, world)."""

    def __init__(self, directory, monkeypatch, source, **state):
        self.file = directory / "world.json"
        path = directory / "bin"
        if not path.exists():
            path.mkdir(parents=True)
            monkeypatch.setenv("PATH", f"{path}:{os.environ['PATH']}")
            self.file.write_text(json.dumps({"calls": []}))
        self.set(**state)
        code = PROGRAMS / f"{source}.py"
        names = next(line for line in code.read_text().splitlines() if line.startswith("NAMES = "))
        for name in json.loads(names.partition(" = ")[2]):
            (path / name).write_text(launcher(sys.executable, "-IS", STAND_IN, code, self.file))
            (path / name).chmod(0o755)

    def __getitem__(self, key):
        return json.loads(self.file.read_text())[key]

    def set(self, **state):
        """Change the state."""
        self.file.write_text(json.dumps({**json.loads(self.file.read_text()), **state}))

    def calls(self, program):
        """The argument lists with which a program was called."""
        return [call[1:] for call in self["calls"] if call[0] == program]
