"""A host's programs in small: a directory for PATH whose programs share one state, a JSON file."""

import json
import os
import sys
from pathlib import Path

PROGRAMS = Path(__file__).with_name("programs")
WRAPPER = """#!{python} -IS
import importlib.util, json, sys
from pathlib import Path
spec = importlib.util.spec_from_file_location("program", {source!r})
program = importlib.util.module_from_spec(spec)
spec.loader.exec_module(program)
state, name, words = Path({state!r}), Path(sys.argv[0]).name, sys.argv[1:]
world = json.loads(state.read_text())
world["calls"].append([name, *words])
status, out, err = program.run(name, words, world)
state.write_text(json.dumps(world))
sys.stdout.write(out)
sys.stderr.write(err)
sys.exit(status)
"""


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
            text = WRAPPER.format(python=sys.executable, source=str(code), state=str(self.file))
            (path / name).write_text(text)
            (path / name).chmod(0o755)

    def __getitem__(self, key):
        return json.loads(self.file.read_text())[key]

    def set(self, **state):
        """Change the state."""
        self.file.write_text(json.dumps({**json.loads(self.file.read_text()), **state}))

    def calls(self, program):
        """The argument lists with which a program was called."""
        return [call[1:] for call in self["calls"] if call[0] == program]
