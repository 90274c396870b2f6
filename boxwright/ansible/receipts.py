"""How a role is declared, as hashes that its receipt on a host is compared with.

A receipt tells which variable has another value since, and never a value: see module_utils/role_receipts.py.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from boxwright.planner.changes.drift import ROLES, key_of
from boxwright.planner.visits import CODE

ROOT = Path(__file__).resolve().parents[2]
#: What runs on hosts for every role, and what decides what it is given.
SHARED_CODE = ("boxwright/ansible/modules", "boxwright/ansible/module_utils", "boxwright/ansible/action",
               "boxwright/ansible/lean", "boxwright/facts/parsers")  # fmt: skip
#: Roles that know nothing of what a box serves, and the shared variables that are no matter to them.
HOST_ROLES = ("nvidia_driver", "container_runtime", "gpu_tuning")
SERVING = ("box_gpus", "box_deployments", "box_hub", "box_pip_index_url")


def declared(values: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Role -> variable -> sha256 of its value, for the roles of a box; `code` stands for the role itself.

    values: a host's variables, templates filled in. A value that is the role's own default counts as not
    given, so that it is the same whether the role's defaults are loaded already or not.
    """
    return {role: dict(_of_role(role, values)) for role in ROLES}


def _of_role(role: str, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield CODE, code(role)
    usual = _defaults(role)
    for name, value in values.items():
        own = name.startswith(f"{role}_")
        shared = name.startswith("box_") and not (role in HOST_ROLES and name in SERVING)
        if name == "box_deployments" and shared:
            yield from _deployments(value)
        elif (own or shared) and not (name in usual and usual[name] == value):
            yield name, _hash(value)


def _deployments(value: Any) -> Iterator[tuple[str, str]]:
    """Each deployment by its name, its key by itself: a new key is another change than a new model."""
    for one in value if isinstance(value, list) else ():
        if isinstance(one, dict):
            name = str(one.get("name"))
            yield f"box_deployments[{name}]", _hash({key: one[key] for key in one if key != "api_key"})
            if one.get("api_key"):
                yield key_of(name), _hash(one["api_key"])


def code(role: str) -> str:
    """A hash of the role and of what its modules are: another version of it is to be visited."""
    return hashlib.sha256(f"{_contents(f'roles/{role}')}{_contents(*SHARED_CODE)}".encode()).hexdigest()


@cache
def _contents(*folders: str) -> str:
    """A hash of all files below folders, by name and contents."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            inner = path.relative_to(ROOT)
            if path.is_file() and not {"molecule", "__pycache__"} & set(inner.parts):
                digest.update(f"{inner}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


@cache
def _defaults(role: str) -> Mapping[str, Any]:
    try:
        found = yaml.safe_load((ROOT / "roles" / role / "defaults" / "main.yml").read_text("utf-8"))
    except FileNotFoundError:
        return {}
    return found if isinstance(found, dict) else {}


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(_by_text(value), sort_keys=True, default=str).encode()).hexdigest()


def _by_text(value: Any) -> Any:
    """A value whose keys are all texts: a number and a text (`0` and `GPU-…`) have no order of their own."""
    if isinstance(value, Mapping):
        return {str(key): _by_text(one) for key, one in value.items()}
    return [_by_text(one) for one in value] if isinstance(value, (list, tuple)) else value
