#!/usr/bin/python
"""Keep the files of a box's monitoring and the units that read them; see that they do what they are for."""

from __future__ import annotations

import grp
import os
from typing import Any, Dict, List, Optional

from ansible.module_utils import kept_files, monitoring_probe, systemctl
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.kept_files import File, KeptError

DOCUMENTATION = r"""
module: monitoring_files
short_description: The files of a box's monitoring and the units that read them
description:
  - Files are written together. Where the program of C(check) is there and refuses them, all are as they were.
  - A unit is started anew where it began before a file of its own was written, and where it does not run.
  - The action of the same name adds what a Prometheus discovers, from the inventory.
options:
  state:
    description: "present keeps files, and units if any are given; verified only looks."
    type: str
    choices: [present, verified]
    default: present
  files: {description: "Path to text.", type: dict, default: {}}
  secrets: {description: "Path to text of what only C(group) may read.", type: dict, default: {}}
  group: {description: "The group that reads secrets.", type: str, default: prometheus}
  gone: {description: "Paths that are not meant any more.", type: list, elements: path, default: []}
  check:
    description: "Program and arguments that refuse what is wrong."
    type: list
    elements: str
    default: []
  units:
    description: "Units that run, each with C(name) and the C(files) that it reads when it starts."
    type: list
    elements: dict
    default: []
  ended:
    description: "Units that are not meant any more: C(name), and the C(mark), a file that makes one ours."
    type: list
    elements: dict
    default: []
  exporter: {description: "With verified, C(host) and C(port) of the node exporter.", type: dict}
  server:
    description: "With verified, C(host), C(port) and C(expected) targets of a Prometheus."
    type: dict
  wait_s: {description: "With verified, seconds to wait until all is well.", type: int, default: 90}
author: [Boxwright maintainers]
"""
EXAMPLES = r"""
- name: The exporter of the cards runs
  monitoring_files:
    files: {/etc/systemd/system/boxwright-gpu-metrics.timer: "…"}
    units: [{name: boxwright-gpu-metrics.timer, files: [/etc/systemd/system/boxwright-gpu-metrics.timer]}]
"""
RETURN = r"""
files: {description: "Paths that were not so.", type: list, returned: with present}
started: {description: "Units that were started anew.", type: list, returned: with present}
"""


def group_of(name: str) -> Optional[int]:
    """The number of a group; None where there is none yet."""
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        return None


def wanted(params: Dict[str, Any]) -> List[File]:
    """All files; secrets only where the package that makes their group is installed."""
    found = [File(path, text) for path, text in sorted(params["files"].items())]
    number = group_of(params["group"])
    if number is not None:
        found += [File(path, text, number) for path, text in sorted(params["secrets"].items())]
    return found + [File(path, None) for path in params["gone"]]


def present(params: Dict[str, Any], check_mode: bool) -> Dict[str, Any]:
    """Have it so; the module's result. Raises KeptError and UnitError."""
    files = wanted(params)
    diff = kept_files.difference(files)
    if check_mode:
        paths = [one["after_header"] for one in diff]
        return {"changed": bool(diff), "files": paths, "started": [], "diff": diff}
    ended = kept_files.stop([one["name"] for one in params["ended"] if os.path.exists(one["mark"])])
    changed = kept_files.put(files, params["check"])
    due = kept_files.due_starts(params["units"], changed)
    if due or ended:
        kept_files.start(due)
    return {"changed": bool(changed or due or ended), "files": changed, "started": due, "diff": diff}


def problems(params: Dict[str, Any]) -> List[str]:
    """What does not work. All is asked at once, so that the time to wait counts once."""

    def ask() -> List[str]:
        found: List[str] = []
        if params["exporter"]:
            found += monitoring_probe.exporter(params["exporter"]["host"], int(params["exporter"]["port"]))
        if params["server"]:
            server = params["server"]
            found += monitoring_probe.server(server["host"], int(server["port"]), server["expected"])
        return found

    found: List[str] = monitoring_probe.settled(ask, params["wait_s"])
    return found


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "verified"], "default": "present"},
            "files": {"type": "dict", "default": {}},
            "secrets": {"type": "dict", "default": {}, "no_log": True},
            "group": {"type": "str", "default": "prometheus"},
            "gone": {"type": "list", "elements": "path", "default": []},
            "check": {"type": "list", "elements": "str", "default": []},
            "units": {"type": "list", "elements": "dict", "default": []},
            "ended": {"type": "list", "elements": "dict", "default": []},
            "exporter": {"type": "dict"},
            "server": {"type": "dict"},
            "wait_s": {"type": "int", "default": 90},
        },
        supports_check_mode=True,
    )
    if module.params["state"] == "verified":
        found = problems(module.params)
        if found:
            module.fail_json(msg="The box is not seen as declared: %s." % "; ".join(found), problems=found)
        module.exit_json(changed=False)
    try:
        module.exit_json(**present(module.params, module.check_mode))
    except (KeptError, systemctl.UnitError, OSError) as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
