#!/usr/bin/python
"""Ansible module: the CDI specification says what this host's cards and driver are now."""

from __future__ import annotations

import os

from ansible.module_utils import cdi
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.command import ensure, read

DOCUMENTATION = r"""
module: cdi_spec
short_description: The CDI specification says what this host's cards and driver are now
description:
  - Has the NVIDIA container toolkit describe the cards, and replaces the specification when that is not what
    it holds
    (another driver, another card). Containers that run keep what they got.
options:
  path: {type: path, default: /etc/cdi/nvidia.yaml, description: "The specification."}
  state: {type: str, choices: [present, absent], default: present, description: "Whether it is there."}
"""
RETURN = r"""
devices: {type: list, description: "Names that containers can ask for."}
"""


def main() -> None:
    """Generate, compare, replace."""
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "default": cdi.SPEC_PATH},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    path, check = module.params["path"], module.check_mode
    before = read(path)
    if module.params["state"] == "absent":
        if before is not None and not check:
            os.unlink(path)
        module.exit_json(changed=before is not None, devices=[])
    try:
        generated = cdi.generate()
        changed = ensure(path, generated.text, 0o644, check=check)
        devices = cdi.devices()
    except cdi.CdiError as error:
        if check:
            module.exit_json(
                changed=True, devices=[], said="would be written once driver and toolkit are there"
            )
        module.fail_json(msg="the cards cannot be described for containers: %s" % error)
    if not check and not devices:
        module.fail_json(
            msg="%s was written, and nvidia-ctk finds no device in it: %s"
            % (path, "; ".join(generated.warnings) or "no warning")
        )
    module.exit_json(
        changed=changed,
        devices=devices,
        diff={"before_header": path, "after_header": path, "before": before or "", "after": generated.text},
    )


if __name__ == "__main__":
    main()
