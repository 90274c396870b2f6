"""How often a host is called by the roles of its driver, its container runtime and its cards.

A call costs a third of a second of the host's processor, whatever it does. Counted is every task of the way
through that runs on the host, as if all of them did: no run makes more of them.
"""

from pathlib import Path

import yaml

ROLES = Path(__file__).resolve().parents[2] / "roles"
#: What runs on the controller.
OURS = {
    "assert",
    "debug",
    "fail",
    "include_tasks",
    "import_tasks",
    "include_vars",
    "set_fact",
    "meta",
    "add_host",
}
WORDS = {"name", "when", "register", "vars", "tags", "block", "loop", "loop_control", "check_mode", "become",
         "changed_when", "failed_when", "notify", "rescue", "always", "no_log", "until", "retries", "delay",
         "environment", "delegate_to", "run_once", "listen", "args", "throttle", "timeout"}  # fmt: skip


def tasks(entries):
    for entry in entries or ():
        inner = [entry[key] for key in ("block", "rescue", "always") if key in entry]
        for part in inner:
            yield from tasks(part)
        if not inner:
            yield entry


def calls(role):
    found = []
    for file in sorted((ROLES / role / "tasks").glob("*.yml")):
        if file.stem == "uninstall":
            continue
        for task in tasks(yaml.safe_load(file.read_text())):
            (module,) = set(task) - WORDS
            if module.rpartition(".")[2] not in OURS:
                assert "loop" not in task, f"{file}: a call for each item"
                found.append(f"{role}: {task['name']}")
    return found


def test_three_roles_stay_under_25_calls_together():
    found = [call for role in ("nvidia_driver", "container_runtime", "gpu_tuning") for call in calls(role)]
    assert len(found) >= 8
    assert len(found) < 25, "\n".join(found)
