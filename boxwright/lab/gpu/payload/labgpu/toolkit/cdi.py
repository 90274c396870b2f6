"""CDI specifications (Container Device Interface): made for the cards of this host, and looked up."""

from __future__ import annotations

import glob
import os
import re
from typing import Any, Dict, List

from .. import files, paths
from . import nvml

KIND = "nvidia.com/gpu"
HOOK = "/usr/bin/nvidia-cdi-hook"
#: Directories in which container engines look for specifications.
DIRECTORIES = ("/etc/cdi", "/var/run/cdi")


def generate(cdi_version: str) -> Dict[str, Any]:
    """One device a card, named by index and by UUID, and "all". Raises nvml.NvmlError."""
    driver = nvml.driver()
    nvml.load_modules()
    devices: List[Dict[str, Any]] = []
    devices += [_device(str(card.index), [nvml.card_node(card)]) for card in driver.cards]
    devices += [_device(card.uuid, [nvml.card_node(card)]) for card in driver.cards]
    devices.append(_device("all", [nvml.card_node(card) for card in driver.cards]))
    common = nvml.common(driver.version)
    hooks = [
        _hook(
            "create-symlinks",
            *(word for target, link in common.links for word in ("--link", target + "::" + link)),
        ),
        _hook("update-ldcache", "--folder", nvml.LIBRARIES),
    ]
    return {
        "cdiVersion": cdi_version,
        "kind": KIND,
        "devices": devices,
        "containerEdits": {
            "env": ["NVIDIA_CTK_LIBCUDA_DIR=" + nvml.LIBRARIES, "NVIDIA_VISIBLE_DEVICES=void"],
            "deviceNodes": [{"path": path} for path in common.nodes],
            "hooks": hooks,
            "mounts": [
                {
                    "hostPath": path,
                    "containerPath": path,
                    "options": [
                        "ro",
                        "nosuid",
                        "nodev",
                        "rbind" if os.path.isdir(paths.at(path)) else "bind",
                        "rprivate",
                    ],
                }
                for path in common.mounts
            ],
        },
    }


def known() -> List[str]:
    """The devices of every specification on this host, such as nvidia.com/gpu=0."""
    found = []
    for directory in DIRECTORIES:
        for path in sorted(glob.glob(os.path.join(paths.at(directory), "*.yaml"))):
            text = files.read(path) or ""
            kind = re.search(r"^kind: *(\S+)", text, re.MULTILINE)
            names = re.findall(r"^ *(?:- )?name: *\"?([^\"\s]+)\"?$", text, re.MULTILINE)
            found += ["%s=%s" % (kind.group(1), name) for name in names] if kind else []
    return sorted(set(found))


def to_yaml(value: Any, column: int = 0) -> str:
    """YAML of mappings, lists and texts; nested blocks begin at multiples of four, as the real tool's do."""
    nested = (column // 4 + 1) * 4
    lines = []
    if isinstance(value, dict):
        for name, item in value.items():
            block = isinstance(item, (dict, list))
            text = "\n" + to_yaml(item, nested) if block else " " + _scalar(item)
            lines.append(" " * column + name + ":" + text)
    else:
        for item in value:
            text = to_yaml(item, column + 2).lstrip() if isinstance(item, dict) else _scalar(item)
            lines.append(" " * column + "- " + text)
    return "\n".join(lines)


def _scalar(value: Any) -> str:
    text = str(value)
    return '"%s"' % text if re.match(r"^[\d.]+$|^(true|false|null|yes|no|all)$|.*[:#]\s|.*:$", text) else text


def _device(name: str, nodes: List[str]) -> Dict[str, Any]:
    return {"name": name, "containerEdits": {"deviceNodes": [{"path": node} for node in nodes]}}


def _hook(name: str, *arguments: str) -> Dict[str, Any]:
    return {
        "hookName": "createContainer",
        "path": HOOK,
        "args": ["nvidia-cdi-hook", name, *arguments],
        "env": ["NVIDIA_CTK_DEBUG=false"],
    }
