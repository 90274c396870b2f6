"""What makes a release the one that it is."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any, Dict, List, Optional

from . import engine_guard
from .engine_container import NETWORK, RUNTIME

if TYPE_CHECKING:
    from ansible.module_utils.docker_api import Image

#: Part of every release's id: raise it when the unit's text changes for the same deployment.
TEMPLATE = 2

#: Of a key's file: root's, and read inside of the container by an engine that is of group 0 and not root.
KEY_MODE = 0o640


def state_of(
    deployment: Dict[str, Any],
    image: Image,
    access: str,
    devices: List[str],
    params: Dict[str, Any],
    user: Optional[str] = None,
) -> Dict[str, Any]:
    """Everything that makes a release the one it is: the same state gives the same unit, and the same id.

    user: `UID:GID` that its engine runs as, None for root.
    """
    name = deployment["name"]
    weights = deployment.get("weights") or {}
    drafter = deployment.get("drafter") or {}
    # Without a draft model there is no word of one, so that such releases keep the ids they had.
    draft = (
        {"drafter_directory": drafter["directory"], "drafter_revision": drafter.get("revision")}
        if drafter
        else {}
    )
    return {
        "template": TEMPLATE,
        "name": name,
        "engine": deployment["engine"],
        "image_digest": image.digest or image.id,
        "reference": image.reference(deployment["image"]),
        "revision": weights.get("revision"),
        "quantize": {
            key: value
            for key, value in (deployment.get("quantize") or {}).items()
            if key in ("method", "bits", "group_size")
        }
        or None,
        "model_directory": deployment["model_directory"],
        **draft,
        **_guard(deployment, params),
        **({} if deployment.get("outgoing", True) else {"network": NETWORK}),
        **({"selinux": True} if deployment.get("selinux") else {}),
        **_runtime(deployment),
        "command": [str(word) for word in deployment["command"]],
        "env": {key: str(value) for key, value in (deployment.get("env") or {}).items()},
        "access": access if devices else "none",
        "devices": devices,
        "bind": deployment["bind"],
        "port": int(deployment["port"]),
        "shm_size": str(deployment.get("shm_size") or "1g"),
        # What one user writes another cannot: each has its own, since root there may do no more than others.
        "cache_directory": os.path.join(
            params["root_dir"], "cache", name, *(["user-" + user.partition(":")[0]] if user else [])
        ),
        **({"user": user} if user else {}),
        "key_file": key_path(params["config_dir"], name),
        "stop_timeout_s": params["stop_timeout_s"],
        "restart_limit": params["restart_limit"],
        "restart_window_s": params["restart_window_s"],
    }


def _guard(deployment: Dict[str, Any], params: Dict[str, Any]) -> Dict[str, Any]:
    """What stands in front of the engine's routes, for an engine that leaves some open."""
    option = (deployment.get("runtime") or {}).get("guard")
    if not option:
        return {}
    return {
        "guard": {
            "option": option,
            "digest": hashlib.sha256(guard_source().encode("utf-8")).hexdigest(),
            "directory": os.path.join(params["root_dir"], "releases", deployment["name"]),
            "closing": True,
            "drain_seconds": params["drain_seconds"],
            "open": sorted(deployment.get("open_paths") or []),
        }
    }


def guard_source() -> str:
    """The text of the guard as this toolkit has it."""
    loader: Any = getattr(engine_guard, "__loader__", None)
    return str(loader.get_source(engine_guard.__name__))


def _runtime(deployment: Dict[str, Any]) -> Dict[str, Any]:
    """How the engine is run, where that is not what a release without a word of it means."""
    said = deployment.get("runtime") or {}
    wanted = {name: said[name] for name in RUNTIME if name in said}
    return {"runtime": wanted} if any(wanted[name] != RUNTIME[name] for name in wanted) else {}


def key_path(config_dir: str, name: str) -> str:
    """Where the key of a deployment lies."""
    return os.path.join(config_dir, "engines", name, "api-key")
