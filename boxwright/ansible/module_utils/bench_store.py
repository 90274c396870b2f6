"""The runs that a host keeps: `<root>/bench/<deployment>/<id>.json`; none is ever replaced."""

from __future__ import annotations

import json
import os
import re
import time
from typing import Any, Dict, List, Optional

from ansible.module_utils.command import read, write

_ID = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{1,64}")
#: Of a run, what a list of runs tells.
HEAD = ("id", "deployment", "release", "image", "made", "seconds")


def directory(root: str, deployment: str) -> str:
    """Where the runs of a deployment lie."""
    return os.path.join(root, "bench", deployment)


def new_id(release: str, now: Optional[float] = None) -> str:
    """The id of a run that begins now: when, and of which release."""
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now)) + "-" + release


def keep(root: str, run: Dict[str, Any]) -> str:
    """Write a run; the path."""
    path = os.path.join(directory(root, run["deployment"]), run["id"] + ".json")
    write(path, json.dumps(run, indent=1, sort_keys=True) + "\n", 0o600)
    return path


def ids(root: str, deployment: str) -> List[str]:
    """The runs of a deployment, the newest first."""
    try:
        names = os.listdir(directory(root, deployment))
    except FileNotFoundError:
        return []
    found = [name[: -len(".json")] for name in names if name.endswith(".json")]
    return sorted((one for one in found if _ID.fullmatch(one)), reverse=True)


def load(root: str, deployment: str, run: str) -> Optional[Dict[str, Any]]:
    """A run by id; None where it is not there, or not whole."""
    text = read(os.path.join(directory(root, deployment), run + ".json"))
    try:
        found = json.loads(text) if text else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def meant(known: List[str], word: str) -> List[str]:
    """The runs that a word means: `last`, an id or its beginning, or all of a release, by its beginning."""
    if word == "last":
        return known[:1]
    return [one for one in known if one.startswith(word)] or [
        one for one in known if one.partition("-")[2].startswith(word)
    ]
