"""The container of a release, described once: systemd's unit, compose, Quadlet and Kubernetes write it out.

Nothing here is of any of them. A host has this file, and the controller.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, NamedTuple, Optional

from .engine_guard import OPEN_PATHS

#: Inside the container; outside, the deployment's own port is published.
PORT = 8000
MODEL_DIRECTORY = "/model"
DRAFTER_DIRECTORY = "/drafter"
CACHE_DIRECTORY = "/cache"
KEY_FILE = "/run/boxwright/api-key"
#: In the container's own /tmp, which is in memory: the key as a file of options, where the engine wants one.
OPTIONS_FILE = "/tmp/boxwright-options.yml"
#: The file of a release that its engine loads in front of its routes (engine_guard), and where it finds it.
GUARD_FILE = "engine_guard.py"
GUARD_INSIDE = "/run/boxwright/" + GUARD_FILE
GUARD_CLASS = "engine_guard.Guard"
#: How an engine gets the key and what it finds set, where a plan does not say (those of releases made before
#: there was more than one engine).
RUNTIME: Dict[str, Any] = {
    "key": {"variable": "VLLM_API_KEY"},
    "env": {"VLLM_CACHE_ROOT": CACHE_DIRECTORY + "/vllm", "VLLM_NO_USAGE_STATS": "1"},
}
#: What the engine may not do once its weights are local: ask a hub, report home. HOME and the caches of
#: compiled kernels lie on the one writable volume.
BASE_ENV = {
    "HOME": CACHE_DIRECTORY,
    "HF_HUB_OFFLINE": "1",
    "DO_NOT_TRACK": "1",
}
#: The engines' own network: ports can be published from it, but nothing on it can call out, since nothing
#: answers an address that is not translated; nor do engines reach each other.
NETWORK = "boxwright"


class Mount(NamedTuple):
    """A directory or file of the host in the container. what: model, drafter, cache, key or guard."""

    what: str
    source: str
    target: str
    read_only: bool


class Container(NamedTuple):
    """How an engine is run, whatever runs it.

    entrypoint reads the key within the container and becomes `command`, which is handed to it. access: cdi,
    gpus (Docker's own way to cards) or none. user: `UID:GID`, None for root. outgoing: whether it may call
    anybody. root is read-only, all capabilities are dropped and none can be gained; `/tmp` is memory.
    """

    name: str
    deployment: str
    release: str
    image: str
    entrypoint: List[str]
    command: List[str]
    env: Dict[str, str]
    mounts: List[Mount]
    access: str
    devices: List[str]
    outgoing: bool
    bind: str
    port: int
    shm_size: str
    stop_timeout_s: int
    user: Optional[str]


def container_name(deployment: str) -> str:
    """The container of a deployment."""
    return "boxwright-%s" % deployment


def container_of(state: Dict[str, Any], release: str) -> Container:
    """The container of a release. state: see engine_state.state_of."""
    env = dict(BASE_ENV, **runtime_of(state)["env"])
    env.update(state["env"])
    guard = state.get("guard")
    if guard:
        env[OPEN_PATHS] = " ".join(guard["open"])
    return Container(
        name=container_name(state["name"]),
        deployment=state["name"],
        release=release,
        image=state["reference"],
        entrypoint=["sh", "-c", _wrapper(state), "boxwright"],
        command=list(state["command"]),
        env=env,
        mounts=_mounts(state, release),
        access=state["access"],
        devices=list(state["devices"]) if state["access"] != "none" else [],
        outgoing=not state.get("network"),
        bind=state["bind"],
        port=state["port"],
        shm_size=state["shm_size"],
        stop_timeout_s=state["stop_timeout_s"],
        user=state.get("user") or None,
    )


def runtime_of(state: Dict[str, Any]) -> Dict[str, Any]:
    """How the engine of a release is run: as its plan said."""
    known: Dict[str, Any] = RUNTIME if state["engine"] == "vllm" else {"key": {}, "env": {}}
    return dict(known, **(state.get("runtime") or {}))


def key_variable(state: Dict[str, Any]) -> Optional[str]:
    """The variable by which the engine gets its key; None where it wants a file of options."""
    found: Optional[str] = runtime_of(state)["key"].get("variable")
    return found


def _mounts(state: Dict[str, Any], release: str) -> List[Mount]:
    found = [Mount("model", state["model_directory"], MODEL_DIRECTORY, True)]
    if state.get("drafter_directory"):
        found.append(Mount("drafter", state["drafter_directory"], DRAFTER_DIRECTORY, True))
    found.append(Mount("cache", state["cache_directory"], CACHE_DIRECTORY, False))
    found.append(Mount("key", state["key_file"], KEY_FILE, True))
    guard = state.get("guard")
    if guard:
        source = os.path.join(guard["directory"], release, GUARD_FILE)
        found.append(Mount("guard", source, GUARD_INSIDE, True))
    return found


def _wrapper(state: Dict[str, Any]) -> str:
    """Reads the key inside the container, where neither `ps` nor `docker inspect` of the host shows it."""
    key = runtime_of(state)["key"]
    variable = key.get("variable")
    if variable:
        run = "%s=$(cat %s) && export %s && " % (variable, KEY_FILE, variable)
        guard = state.get("guard")
        if not guard:
            return run + 'exec "$@"'
        path = "export PYTHONPATH=%s${PYTHONPATH:+:$PYTHONPATH} && " % os.path.dirname(GUARD_INSIDE)
        return run + path + 'exec "$@" %s %s' % (guard["option"], GUARD_CLASS)
    # A value of YAML in single quotes: what is quoted there is a quote, written twice.
    quoted = "sed \"s/'/''/g; s/.*/%s: '&'/\" %s" % (key["option"], KEY_FILE)
    return 'umask 077 && %s > %s && exec "$@" %s %s' % (
        quoted,
        OPTIONS_FILE,
        key["file_option"],
        OPTIONS_FILE,
    )
