"""A plan without a connection is quick: what it does not need is not imported."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PLAN = ["plan", "--host", "rtx5090", "--offline", "--json", "--inventory", str(ROOT / "inventory" / "rigs")]
#: Seconds of processor time: twice what it takes where this was written, for machines that are slower.
MOST_CPU_S = 2.0
#: The lab with its client of Docker, and what draws tables.
NOT_NEEDED = {"docker", "requests", "rich", "boxwright.lab"}
PROGRAM = """
import json, sys
from boxwright.cli import program
sys.argv = ["invoke", *sys.argv[1:]]
try:
    program.main()
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def test_what_a_plan_imports():
    argv = [sys.executable, "-c", PROGRAM, "--search-root", str(ROOT), *PLAN]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, cwd=ROOT)
    assert json.loads(done.stdout)["deployments"]
    assert not NOT_NEEDED & set(json.loads(done.stderr))


def test_processor_time_of_a_plan():
    argv = [sys.executable, "-m", "boxwright.cli", "--search-root", str(ROOT), *PLAN]
    taken = []
    for _ in range(2):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run(argv, capture_output=True, check=True, cwd=ROOT, env={**os.environ, "NO_COLOR": "1"})
        taken.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
    # The first run may have compiled what was changed.
    assert min(taken) < MOST_CPU_S
