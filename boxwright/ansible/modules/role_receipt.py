#!/usr/bin/python
"""Keeps or forgets what roles' whole runs left on a host."""

from __future__ import annotations

from ansible.module_utils import role_receipts, shapes
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.shapes import TEXT, Fields, ListOf, MapOf

DOCUMENTATION = r"""
module: role_receipt
short_description: Record that roles have left a host as declared
description:
  - Records how each role was declared and the state of what it watches, so that the next plan can tell
    whether it has to be visited. Recording changes nothing that is declared, and is never told as a change.
options:
  roles:
    type: dict
    required: true
    description:
      - Role -> what it watches (files, beside, listings, packages, units), as lists of patterns.
      - With state absent only the names count.
  state: {type: str, choices: [present, absent], default: present, description: "Whether there are receipts."}
  config_dir: {type: path, default: /etc/boxwright, description: "Where receipts are kept, below receipts/."}
  declared: {type: dict, default: {}, description: "Role -> variable -> sha256; the action gives it."}
author: [Boxwright maintainers]
"""
EXAMPLES = r"""
- name: What the roles left is recorded
  role_receipt:
    roles:
      gpu_tuning: {files: [/etc/boxwright/gpu-tuning.json], units: [boxwright-gpu-tuning.service]}
"""
RETURN = r"""
watched: {description: "How many subjects the receipts tell of.", type: int, returned: when present}
"""


_PATTERNS = ("files", "beside", "listings", "packages", "units")
#: What is in its parameters of mappings and lists; of `roles` where they are recorded.
SHAPES = {"declared": MapOf(MapOf(TEXT))}
WATCHES = {"roles": MapOf(Fields({}, dict.fromkeys(_PATTERNS, ListOf(TEXT)), others=False))}


def main() -> None:
    """The module."""
    module = AnsibleModule(
        supports_check_mode=True,
        argument_spec={
            "roles": {"type": "dict", "required": True},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "config_dir": {"type": "path", "default": "/etc/boxwright"},
            "declared": {"type": "dict", "default": {}, "no_log": True},
        },
    )
    asked = module.params
    shapes.refuse(module, SHAPES if asked["state"] == "absent" else {**SHAPES, **WATCHES})
    if module.check_mode:
        module.exit_json(changed=False)
    try:
        if asked["state"] == "absent":
            for role in asked["roles"]:
                role_receipts.remove(asked["config_dir"], role)
            module.exit_json(changed=False)
        made = role_receipts.write(asked["config_dir"], asked["declared"], asked["roles"])
    except ValueError as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(
            msg="The receipts of the roles %s cannot be kept: %s: %s. Make room or mend the directory, and "
            "rerun." % (", ".join(sorted(asked["roles"])), error.filename, error.strerror or error)
        )
    module.exit_json(changed=False, watched=made)


if __name__ == "__main__":
    main()
