#!/usr/bin/python
"""Ansible module: the runs of the benchmark that a host keeps."""

from __future__ import annotations

from typing import Any, Dict

from ansible.module_utils import bench_store, engine_store
from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: bench_runs
short_description: The runs of the benchmark that a host keeps
description:
  - Tells which runs a host keeps of a deployment, and hands out those that are meant, whole.
options:
  deployment: {type: str, description: "Which one; needed where the host has several."}
  wanted:
    type: list
    elements: str
    default: []
    description: "Words that mean runs: `last`, an id or its beginning, or a release's."
  root_dir: {type: path, required: true, description: "Where releases and runs lie."}
"""
EXAMPLES = r"""
- name: The last run
  bench_runs:
    wanted: [last]
    root_dir: /var/lib/boxwright
"""
RETURN = r"""
runs: {description: "What each run is, the newest first.", type: list, returned: always}
found: {description: "Word -> the runs that it means, whole, the newest first.", type: dict, returned: always}
"""
#: Of what one word means, the newest; more would be megabytes over the line.
MOST = 20


def read(params: Dict[str, Any], deployment: str) -> Dict[str, Any]:
    """The list of runs, and those that are wanted."""
    root = params["root_dir"]
    known = bench_store.ids(root, deployment)
    whole = {}
    for word in params["wanted"]:
        meant = [bench_store.load(root, deployment, one) for one in bench_store.meant(known, word)[:MOST]]
        whole[word] = [run for run in meant if run is not None]
    heads = []
    for one in known:
        run = bench_store.load(root, deployment, one)
        if run is not None:
            heads.append({name: run.get(name) for name in bench_store.HEAD})
    return {"deployment": deployment, "runs": heads, "found": whole}


def main() -> None:
    """The module."""
    module = AnsibleModule(
        argument_spec={
            "deployment": {"type": "str"},
            "wanted": {"type": "list", "elements": "str", "default": []},
            "root_dir": {"type": "path", "required": True},
        },
        supports_check_mode=True,
    )
    params = module.params
    try:
        name = engine_store.chosen(params["root_dir"], params["deployment"])
    except engine_store.ChoiceError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, **read(params, name))


if __name__ == "__main__":
    main()
