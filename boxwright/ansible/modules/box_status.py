#!/usr/bin/python
"""How a box fares at this moment, in one short trip: cards, units, and what the engines count."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, List, Optional, Tuple

from ansible.module_utils import diagnosis_reading, nvidia_smi, role_receipts, shapes
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.command import run
from ansible.module_utils.docker_api import Docker, DockerError
from ansible.module_utils.engine_container import container_name
from ansible.module_utils.engine_drift import drift
from ansible.module_utils.engine_probe import endpoint_of
from ansible.module_utils.engine_store import Store
from ansible.module_utils.engine_store import deployments as recorded
from ansible.module_utils.engine_unit import unit_name
from ansible.module_utils.shapes import TEXT, MapOf

DOCUMENTATION = r"""
module: box_status
short_description: Read how a box fares at this moment
description:
  - Reads temperature, power, clocks and memory of the cards, the state of each deployment's unit and
    container, and the engine's counters twice, so that tokens a second can be told.
  - Compares the receipts of earlier runs with the host, without visiting any role, and each running
    container and its unit with the release that counts.
  - Changes nothing, and logs are not read.
options:
  root_dir: {type: path, default: /var/lib/boxwright, description: "Where releases are kept."}
  config_dir: {type: path, default: /etc/boxwright, description: "Where receipts are kept."}
  deployments: {type: list, elements: str, default: [], description: "Names of declared deployments."}
  declared: {type: dict, default: {}, description: "Role -> variable -> sha256; the action gives it."}
  interval_s: {type: float, default: 1.0, description: "Seconds between two readings of the counters."}
author: [Boxwright maintainers]
"""
EXAMPLES = r"""
- name: How the box fares
  box_status:
    deployments: [qwen]
"""
RETURN = r"""
raw: {description: "Texts and values as read, for boxwright.doctor.glance.", type: dict, returned: always}
"""

FIELDS = (
    "index",
    "name",
    "driver_version",
    "temperature.gpu",
    "power.draw",
    "power.limit",
    "clocks.current.graphics",
    "memory.used",
    "memory.total",
    "utilization.gpu",
)
TIMEOUT_S = 15


def cards() -> Dict[str, Any]:
    """What nvidia-smi says of the cards now."""
    query = "--query-gpu=" + ",".join(FIELDS)
    done = run(["nvidia-smi", query, "--format=csv,noheader"], timeout=TIMEOUT_S)
    found = nvidia_smi.query(done.stdout, done.stderr, FIELDS)
    return {
        "outcome": nvidia_smi.outcome(done.rc, done.stdout, done.stderr),
        "rows": found.rows,
        "lost": found.lost,
    }


def deployment(root_dir: str, name: str, interval_s: float) -> Dict[str, Any]:
    """One deployment: release, unit, container, what drifted, health and counters."""
    release = Store(root_dir, name).read(Store(root_dir, name).link("current"))
    container, lost = inspected(name)
    found: Dict[str, Any] = {
        "name": name,
        "release": release.id if release else None,
        "plan": plan_of(release.plan) if release else {},
        "model_directory": release.state.get("model_directory") if release else None,
        "unit": diagnosis_reading.unit(unit_name(name)),
        "container": diagnosis_reading.described(container) if not lost else {"error": lost},
        "started": str(((container or {}).get("State") or {}).get("StartedAt") or ""),
        "drift": [],
        "trial": False,
        "health": None,
        "metrics": "",
    }
    if release:
        found["drift"], found["trial"] = drift(release, container, image_id)
    if release and found["unit"].get("running"):
        endpoint = endpoint_of(release.state)
        found["health"] = diagnosis_reading.health(endpoint)
        if found["health"] == 200:
            before, began = diagnosis_reading.counters(endpoint), time.monotonic()
            time.sleep(interval_s)
            found["metrics_before"], found["metrics"] = before, diagnosis_reading.counters(endpoint)
            found["interval_s"] = time.monotonic() - began
    return found


def plan_of(plan: Dict[str, Any]) -> Dict[str, Any]:
    """What a glance tells of the plan that made a release. model: on its hub, or where it lies."""
    weights = plan.get("weights") or {}
    kept = {key: plan.get(key) for key in ("image", "context", "gpus", "serves")}
    return dict(kept, model=weights.get("repo") or weights.get("directory"))


def inspected(name: str) -> Tuple[Optional[Dict[str, Any]], str]:
    """The container as Docker shows it, None where there is none; and why Docker does not tell."""
    try:
        return Docker().container(container_name(name)), ""
    except DockerError as error:
        return None, str(error)


def image_id(reference: str) -> Optional[str]:
    """The id of an image on this host; None where it is not here, or Docker does not tell."""
    try:
        found = Docker().image(reference)
    except DockerError:
        return None
    return found.id if found else None


def read(asked: Dict[str, Any]) -> Dict[str, Any]:
    """The whole raw answer."""
    names: List[str] = sorted(set(recorded(asked["root_dir"])) | set(asked["deployments"]))
    with ThreadPoolExecutor(max_workers=8) as pool:
        smi = pool.submit(cards)
        receipts = pool.submit(role_receipts.compared, asked["config_dir"], asked["declared"])
        found = [pool.submit(deployment, asked["root_dir"], name, asked["interval_s"]) for name in names]
        return {
            "now": time.time(),
            "cards": smi.result(),
            "receipts": receipts.result(),
            "deployments": [one.result() for one in found],
        }


def main() -> None:
    """The module."""
    module = AnsibleModule(
        supports_check_mode=True,
        argument_spec={
            "root_dir": {"type": "path", "default": "/var/lib/boxwright"},
            "config_dir": {"type": "path", "default": "/etc/boxwright"},
            "deployments": {"type": "list", "elements": "str", "default": []},
            "declared": {"type": "dict", "default": {}, "no_log": True},
            "interval_s": {"type": "float", "default": 1.0},
        },
    )
    shapes.refuse(module, {"declared": MapOf(MapOf(TEXT))})
    secrets = diagnosis_reading.keys(module.params["config_dir"])
    module.exit_json(changed=False, raw=diagnosis_reading.masked(read(module.params), secrets))


if __name__ == "__main__":
    main()
