"""What the role nvidia_driver asks of held_packages, as Ansible makes it of its variables and tasks."""

import json
import sys
from pathlib import Path

import host_doubles as doubles
import yaml

from boxwright import catalog, planner
from boxwright.spec.box import box_from_variables

ROLE = Path(__file__).resolve().parents[3] / "roles/nvidia_driver"


def of_hosts(place, family, hosts):
    """Arguments by host, in one run. hosts: name -> its facts and the declared variables."""
    defaults = yaml.safe_load((ROLE / "defaults/main.yml").read_text())
    install = yaml.safe_load((ROLE / "tasks/install.yml").read_text())
    task = next(one for one in install if "held_packages" in one)
    known = {
        name: {
            **defaults,
            **variables,
            **task["vars"],
            "asked": task["held_packages"],
            "box_plan": planner.plan(box_from_variables("box1", variables), facts, catalog.load()).to_json(),
            "__nvidia_driver_source": {"changed": False, "created": False},
            "ansible_connection": "local",
            "ansible_python_interpreter": sys.executable,
        }
        for name, (facts, variables) in hosts.items()
    }
    refused = {
        name: gate
        for name, one in known.items()
        for gate in one["box_plan"]["gates"]
        if gate["path"].startswith("nvidia_driver")
    }
    assert not refused, refused
    files = [str(ROLE / "vars" / name) for name in ("main.yml", f"{family}.yml")]
    written = {"content": "{{ asked | to_json }}", "dest": f"{place}/{{{{ inventory_hostname }}}}.json"}
    done = doubles.play(place, known, [*({"include_vars": name} for name in files), {"copy": written}])
    assert done.returncode == 0, done.stdout + done.stderr
    return {name: json.loads((place / f"{name}.json").read_text()) for name in hosts}
