#!/usr/bin/python
"""Ansible module: the CDI specification says what this host's cards and driver are now."""

from __future__ import annotations

import os
from typing import List

from ansible.module_utils import cdi, cdi_refresh
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.command import ensure, read
from ansible.module_utils.systemctl import UnitError

DOCUMENTATION = r"""
module: cdi_spec
short_description: The CDI specification says what this host's cards and driver are now
description:
  - Has the NVIDIA container toolkit describe the cards, and replaces the specification when that is not what
    it holds (another driver, another card). Containers that run keep what they got.
  - Has the cards described anew at every boot before Docker starts, by the toolkit's own service where it
    brings one, else by a unit.
options:
  path: {type: path, default: /etc/cdi/nvidia.yaml, description: "The specification."}
  state: {type: str, choices: [present, absent], default: present, description: "Whether it is there."}
"""
RETURN = r"""
devices: {type: list, description: "Names that containers can ask for."}
"""


class Rival(Exception):
    """Another file describes the cards; the text says which."""


def _alone(path: str) -> None:
    """See that no other file beside ours describes cards. Raises Rival."""
    rivals = cdi.rivals(path)
    if rivals:
        raise Rival(
            "%s describes the cards too, beside %s: Docker gives no device that two of them name. Remove it, "
            "or move it out of the directory" % (", ".join(rivals), path)
        )


def _bring_up_to_date(outdated: List[str], text: str) -> None:
    """Have the toolkit's service replace what it wrote for another driver. Raises CdiError, UnitError."""
    if not outdated:
        return
    cdi_refresh.run_vendor()
    left = cdi.outdated(text)
    if left:
        raise cdi.CdiError(
            "%s is of another driver, goes before ours, and %s does not bring it up to date: remove it"
            % (", ".join(left), cdi_refresh.VENDOR)
        )


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
    try:
        files = cdi_refresh.wanted(module.params["state"] == "present", path)
        due = cdi_refresh.differing(files)
        if module.params["state"] == "absent":
            if not check:
                cdi_refresh.apply(files)
                if before is not None:
                    os.unlink(path)
            module.exit_json(changed=bool(before is not None or due), devices=[])
        _alone(path)
        generated = cdi.generate()
        changed = ensure(path, generated.text, 0o644, check=check)
        outdated = cdi.outdated(generated.text)
        if not check:
            cdi_refresh.apply(files)
            _bring_up_to_date(outdated, generated.text)
        changed = bool(changed or outdated or due)
        devices = cdi.devices()
    except cdi.CdiError as error:
        if check:
            module.exit_json(
                changed=True, devices=[], said="would be written once driver and toolkit are there"
            )
        module.fail_json(msg="the cards cannot be described for containers: %s" % error)
    except (Rival, UnitError) as error:
        module.fail_json(msg=str(error))
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
