"""Plans of a whole fleet from its inventory, without a connection."""

import json
import os
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[3]
BOXES = 200
#: Seconds of processor time and MiB of memory that the plans of all boxes may take (4 s and 90 MiB when this
#: was written): room for a slow machine, and none for work that grows with the square of the fleet.
MOST_SECONDS, MOST_MIB = 30, 400


def box(index):
    deployment = {
        "name": "qwen",
        "model": "qwen3-8b",
        "image": "vllm/vllm-openai:v0.29.0",
        "context": 4096,
        "port": 8000,
    }
    return {
        "ansible_host": f"192.0.2.{index % 250 + 1}",
        "box_gpus": {"model": ("rtx3090", "rtx4090", "rtx5090")[index % 3], "count": index % 2 + 1},
        "box_deployments": [deployment],
    }


def test_a_fleet_is_planned_at_once(tmp_path):
    hosts = {f"box{index:03}": box(index) for index in range(BOXES)}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
    told, said = tmp_path / "plans.json", tmp_path / "said"
    with told.open("wb") as output, said.open("wb") as errors:
        run = subprocess.Popen(
            [sys.executable, "-m", "boxwright.cli", "plan", "--host", ",".join(hosts), "--offline", "--json",
             "--inventory", str(tmp_path)],
            cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=errors,
        )  # fmt: skip
        _, status, used = os.wait4(run.pid, 0)
        run.returncode = os.waitstatus_to_exitcode(status)
    assert run.returncode == 0, said.read_text()
    plans = json.loads(told.read_text())
    assert list(plans) == list(hosts)
    assert {name for name, plan in plans.items() if plan["gates"]} == set()
    assert used.ru_utime + used.ru_stime < MOST_SECONDS
    assert used.ru_maxrss / 1024 < MOST_MIB
