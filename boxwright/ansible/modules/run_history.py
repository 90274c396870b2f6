#!/usr/bin/python
"""Ansible module: the lines that runs left in a box's history."""

from __future__ import annotations

import os
from typing import List

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: run_history
short_description: The lines that runs left in a box's history
description:
  - Hands out the lines as they are, the oldest first; what they say is for the controller to read.
options:
  directory: {type: path, default: /var/log/boxwright, description: "Where runs leave their lines."}
  most: {type: int, default: 4000, description: "Most lines, from the end."}
"""
EXAMPLES = r"""
- name: What ran on the box
  run_history:
"""
RETURN = r"""
lines: {description: "The lines, the oldest first.", type: list, returned: always}
"""
#: The file before, and the present one.
FILES = ("runs.jsonl.1", "runs.jsonl")
#: Bytes of one file that are read, from its end; none of ours is longer.
MOST_BYTES = 2 << 20


def lines(directory: str, most: int) -> List[str]:
    """The last lines of both files. Raises OSError for files that are there and cannot be read."""
    found: List[str] = []
    for name in FILES:
        try:
            with open(os.path.join(directory, name), "rb") as stream:
                stream.seek(max(0, os.fstat(stream.fileno()).st_size - MOST_BYTES))
                found += stream.read(MOST_BYTES).decode("utf-8", "replace").splitlines()
        except FileNotFoundError:
            continue
    return found[-most:]


def main() -> None:
    """The module."""
    module = AnsibleModule(
        argument_spec={
            "directory": {"type": "path", "default": "/var/log/boxwright"},
            "most": {"type": "int", "default": 4000},
        },
        supports_check_mode=True,
    )
    try:
        found = lines(module.params["directory"], module.params["most"])
    except OSError as error:
        module.fail_json(msg="%s: %s" % (error.filename, error.strerror or error))
    module.exit_json(changed=False, lines=found)


if __name__ == "__main__":
    main()
