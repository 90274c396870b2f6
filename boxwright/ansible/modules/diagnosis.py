#!/usr/bin/python
"""What a doctor wants to see of a host, in one trip: logs, states, counters; bounded, without secrets."""

from __future__ import annotations

from ansible.module_utils import diagnosis_reading
from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: diagnosis
short_description: Read a host's logs, states and counters in one trip
description:
  - Reads the journal of each deployment's unit, its container's state and the engine's counters.
  - Reads the kernel log, Docker's journal, what nvidia-smi says, and how the last run of the host ended.
  - Changes nothing. Every program has a time limit, every text a largest size, and secrets are masked here.
options:
  root_dir: {type: path, default: /var/lib/boxwright, description: "Where releases are kept."}
  config_dir: {type: path, default: /etc/boxwright, description: "Where keys are kept."}
  deployments:
    type: list
    elements: str
    default: []
    description: "Names of declared deployments; those that are recorded on the host are read as well."
  lines: {type: int, default: 6000, description: "Most lines of one journal."}
  releases: {type: bool, default: false, description: "Read the records of each deployment's releases too."}
author: [Boxwright maintainers]
"""
EXAMPLES = r"""
- name: What is to be seen of the host is read
  diagnosis:
    deployments: [qwen]
"""
RETURN = r"""
raw: {description: "Texts and values as read, for boxwright.doctor.", type: dict, returned: always}
"""


def main() -> None:
    """The module."""
    module = AnsibleModule(
        supports_check_mode=True,
        argument_spec={
            "root_dir": {"type": "path", "default": "/var/lib/boxwright"},
            "config_dir": {"type": "path", "default": "/etc/boxwright"},
            "deployments": {"type": "list", "elements": "str", "default": []},
            "lines": {"type": "int", "default": 6000},
            "releases": {"type": "bool", "default": False},
        },
    )
    module.exit_json(changed=False, raw=diagnosis_reading.read(module.params))


if __name__ == "__main__":
    main()
