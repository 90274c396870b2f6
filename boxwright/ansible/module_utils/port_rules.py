"""Rules for published ports, as the program of the role engine made them and finds them."""

from __future__ import annotations

import os
from typing import Any, Dict

from ansible.module_utils import host_reading
from ansible.module_utils.command import run

SCRIPT, STATE = "/usr/local/lib/boxwright/port-access.py", "/run/boxwright/port-access.json"
#: Seconds for the program, which asks iptables and ip6tables.
TIMEOUT = 15


def look(config_dir: str) -> Dict[str, Any]:
    """The declaration that rules for published ports were made of, and what of them is otherwise now."""
    config = os.path.join(config_dir, "port-access.json")
    declared = host_reading.text(config)
    if declared is None or not os.path.exists(SCRIPT):
        return {}
    answer = run(["/usr/bin/python3", "-I", SCRIPT, "check", config, STATE], timeout=TIMEOUT)
    wrong = [line for line in answer.stdout.splitlines() if line]
    return {
        "declared": declared,
        "wrong": wrong if answer.rc in (0, 1) else [answer.stderr.strip() or "the rules cannot be read"],
    }
