"""A rerun that changes nothing goes through provision.yml in few steps.

Each step costs the controller a process for each box, also one that is passed over: of 16 boxes some twenty
steps were longer than all that is asked of the boxes. What is asked of a box stands in for here.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
#: Steps of a quiet run, passed over or not; of them those that a box is asked for: its history twice, its
#: facts, and its models' answers.
MOST_STEPS, ASKED = 18, ["run_record", "host_facts", "engine_gate", "run_record"]
ACTION = """
import json, os
from ansible.plugins.action import ActionBase

class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        with open(os.environ["ASKED"], "a") as stream:
            stream.write({name!r} + "\\n")
        return json.loads({answer!r})
"""
DEPLOYMENT = {"name": "qwen", "model": "qwen3-8b", "image": "vllm/vllm-openai:v0.29.0"}
RELEASES = [{"deployment": "qwen", "id": "0123456789ab", "current": True}]
PLAN = {
    "visits": {},
    "changes": [],
    "deployments": [DEPLOYMENT],
    "facts": {"kept": {"receipts": {}, "authorities": []}, "releases": RELEASES},
}
SERVED = {"results": [{"name": "qwen", "answer": "hello", "reasons": []}], "removed": []}
ANSWERS = {
    "run_record": {"changed": False},
    "host_facts": {"changed": False, "raw": {}},
    "plan": {"changed": False, "ansible_facts": {"box_plan": PLAN}},
    "engine_gate": {"changed": False, **SERVED},
}


@pytest.fixture
def quiet_run(tmp_path):
    """provision.yml on this machine as a box that is as declared: its report, and what it was asked."""
    actions, inventory = tmp_path / "actions", tmp_path / "inventory.yml"
    actions.mkdir()
    for name, answer in ANSWERS.items():
        (actions / f"{name}.py").write_text(ACTION.format(name=name, answer=json.dumps(answer)))
    host = {"ansible_connection": "local", "ansible_become": False, "box_deployments": [DEPLOYMENT]}
    inventory.write_text(yaml.safe_dump({"all": {"hosts": {"box1": host}}}))
    report, asked = tmp_path / "report.json", tmp_path / "asked"
    done = subprocess.run(
        [
            Path(sys.executable).with_name("ansible-playbook"),
            ROOT / "playbooks/provision.yml",
            "-i",
            inventory,
        ],
        cwd=ROOT,
        env={
            **os.environ,
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_ACTION_PLUGINS": str(actions),
            "ANSIBLE_STDOUT_CALLBACK": "boxwright",
            "BOXWRIGHT_REPORT": str(report),
            "ASKED": str(asked),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(report.read_text())["hosts"]["box1"], asked.read_text().split()


def test_a_quiet_run_has_few_steps_and_asks_the_box_four_times(quiet_run):
    report, asked = quiet_run
    assert [name for name in asked if name != "plan"] == ASKED
    assert report["tasks"] <= MOST_STEPS
    assert report["failure"] is None


def test_it_tells_of_each_role_that_it_did_not_visit(quiet_run):
    report, _ = quiet_run
    told = [(one["role"], one["visited"], one["changed"]) for one in report["roles"]]
    passed_over = ("nvidia_driver", "container_runtime", "gpu_tuning", "model_weights", "model_quantize")
    assert told == [
        ("preflight", True, 0),
        *((role, False, 0) for role in passed_over),
        ("engine", True, 0),
    ]
