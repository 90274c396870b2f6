"""Runs a stand-in program: SOURCE STATE NAME [WORD…], where SOURCE has run(name, words, world)."""

import importlib.util
import json
import sys
from pathlib import Path

source, state, name, *words = sys.argv[1:]
spec = importlib.util.spec_from_file_location("program", source)
program = importlib.util.module_from_spec(spec)
spec.loader.exec_module(program)
name = Path(name).name
world = json.loads(Path(state).read_text())
world["calls"].append([name, *words])
status, out, err = program.run(name, words, world)
Path(state).write_text(json.dumps(world))
sys.stdout.write(out)
sys.stderr.write(err)
sys.exit(status)
