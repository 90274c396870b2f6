#!/usr/bin/python
"""What engines wrote to the journal, without secrets."""

from __future__ import annotations

import re
from typing import Any, Dict

from ansible.module_utils import diagnosis_reading
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.command import run
from ansible.module_utils.engine_unit import unit_name

DOCUMENTATION = r"""
module: engine_journal
short_description: Read what engines wrote
description:
  - Reads the end of the journal of each deployment's unit, or what came after a cursor; masks secrets.
  - Changes nothing.
options:
  config_dir: {type: path, default: /etc/boxwright, description: "Where keys are kept."}
  deployments: {type: list, elements: str, required: true, description: "Names of deployments."}
  lines: {type: int, default: 200, description: "Most lines of one journal."}
  since: {type: str, default: "", description: "Only what is newer, as journalctl takes it (`-1h`)."}
  cursors: {type: dict, default: {}, description: "Deployment -> where an earlier reading ended."}
author: [Boxwright maintainers]
"""
EXAMPLES = r"""
- name: What the engines wrote last
  engine_journal:
    deployments: [qwen]
"""
RETURN = r"""
journals: {description: "For each deployment: name, lines, cursor, problem.", type: list, returned: always}
"""

TIMEOUT_S = 30
CURSOR = "-- cursor: "
#: Longest line that is kept, in characters.
LONGEST = 8192
#: Most lines after a cursor.
MOST_LINES = 100_000
#: What a deployment is called: it becomes part of a unit's name.
NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,62}")


def journal(asked: Dict[str, Any], name: str) -> Dict[str, Any]:
    """The journal of one deployment: lines as `journalctl --output=short-iso` has them, oldest first."""
    if not NAME.fullmatch(name):
        return {"name": name, "lines": [], "cursor": None, "problem": "no deployment can have this name"}
    argv = [
        "journalctl",
        "--no-pager",
        "--quiet",
        "--output=short-iso",
        "--show-cursor",
        "--unit=" + unit_name(name),
    ]
    cursor = asked["cursors"].get(name)
    argv += ["--after-cursor=" + cursor] if cursor else ["--lines=%d" % asked["lines"]]
    if asked["since"] and not cursor:
        argv.append("--since=" + asked["since"])
    done = run(argv, timeout=TIMEOUT_S)
    # Whole, until secrets are masked in them: half a key is no key that is known.
    lines = done.stdout.splitlines()
    ends = [line[len(CURSOR) :] for line in lines if line.startswith(CURSOR)]
    return {
        "name": name,
        # All that came after a cursor: a fast engine writes more between two looks than a first one shows.
        "lines": [line for line in lines if not line.startswith(CURSOR)][
            -(MOST_LINES if cursor else asked["lines"]) :
        ],
        "cursor": ends[-1] if ends else cursor,
        "problem": done.text.strip()[:500] if done.rc else None,
    }


def main() -> None:
    """The module."""
    module = AnsibleModule(
        supports_check_mode=True,
        argument_spec={
            "config_dir": {"type": "path", "default": "/etc/boxwright"},
            "deployments": {"type": "list", "elements": "str", "required": True},
            "lines": {"type": "int", "default": 200},
            "since": {"type": "str", "default": ""},
            "cursors": {"type": "dict", "default": {}},
        },
    )
    asked = module.params
    found = [journal(asked, name) for name in asked["deployments"]]
    secrets = diagnosis_reading.keys(asked["config_dir"])
    journals = diagnosis_reading.masked(found, secrets)
    for one in journals:
        one["lines"] = [line[:LONGEST] for line in one["lines"]]
    module.exit_json(changed=False, journals=journals)


if __name__ == "__main__":
    main()
