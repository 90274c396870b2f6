"""Whether what runs of a deployment is what its current release says: its unit, and what Docker was told.

A release records the state that made it (engine_state); nothing of it is read from the container's own
files, so this is one look at Docker's answer and one small file.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from ansible.module_utils import systemctl
from ansible.module_utils.command import read
from ansible.module_utils.engine_container import DRAFTER_DIRECTORY, MODEL_DIRECTORY, PORT
from ansible.module_utils.engine_guard import OPEN_PATHS
from ansible.module_utils.engine_store import Release
from ansible.module_utils.engine_unit import TRIAL_DIRECTORY, unit_name

#: Words of a command line that are told, and the length of one.
MOST_WORDS, LONGEST_WORD = 4, 60
#: What stands before the engine's own words: `sh -c WRAPPER boxwright` (engine_container).
_BEFORE = ("-c", None, "boxwright")
#: How CDI names the cards of this vendor.
_CDI = "nvidia.com/gpu="


class Drift(NamedTuple):
    """What is not as the current release has it, in words. trial: a run is trying another release there."""

    words: List[str]
    trial: bool


def drift(
    release: Release,
    container: Optional[Dict[str, Any]],
    image_id: Callable[[str], Optional[str]],
    directory: str = "",
    trial_directory: str = "",
) -> Drift:
    """Compare a deployment with its current release.

    container: as `docker inspect` shows it, None where none is there. image_id: the id of an image by its
    reference, None where it is not here; only asked where the references differ.
    """
    unit = unit_name(release.state["name"])
    trial = os.path.join(trial_directory or TRIAL_DIRECTORY, unit)
    path = os.path.join(directory or systemctl.UNIT_DIRECTORY, unit)
    if os.path.lexists(trial):
        return Drift([], True)
    text = read(path)
    words = []
    if text != release.unit:
        words.append("%s %s" % (path, "is gone" if text is None else "was edited"))
    if container and (container.get("State") or {}).get("Running"):
        words += of_container(release, container, image_id)
    return Drift(words, False)


def of_container(
    release: Release, container: Dict[str, Any], image_id: Callable[[str], Optional[str]]
) -> List[str]:
    """What a running container was started with that its release does not say."""
    config, host = container.get("Config") or {}, container.get("HostConfig") or {}
    label = (config.get("Labels") or {}).get("boxwright.release")
    if label != release.id:
        # All of it differs then; which of it, nobody has to know.
        return ["its container is of release %s" % label if label else "its container is of no release"]
    state, found = release.state, []
    arguments, env = list(state.get("command") or []), state.get("env") or {}
    if not _same_image(state, container, image_id):
        found.append("its container is of another image: %s" % config.get("Image"))
    command = list(config.get("Cmd") or [])
    if not _wrapped(command):
        found.append("its container was started with another command")
    elif command[len(_BEFORE) :] != arguments:
        found.append("its container's arguments differ: " + _told(arguments, command[len(_BEFORE) :]))
    variables = set(config.get("Env") or [])
    # What a guard is told is not what was declared under its variable's name.
    told = set() if state.get("guard") is None else {OPEN_PATHS}
    other = sorted(
        name for name, value in env.items() if name not in told and "%s=%s" % (name, value) not in variables
    )
    if other:
        found.append("its container's environment differs: " + ", ".join(other[:MOST_WORDS]))
    found += ["its container has another %s" % what for what, was, now in _of_host(state, host) if was != now]
    return found


def _same_image(
    state: Dict[str, Any], container: Dict[str, Any], image_id: Callable[[str], Optional[str]]
) -> bool:
    """By the reference, which names contents; where that is spelt otherwise, by the contents themselves."""
    reference = str(state.get("reference"))
    if reference in ((container.get("Config") or {}).get("Image"), container.get("Image")):
        return True
    known = image_id(reference)
    return known is not None and known == container.get("Image")


def _wrapped(command: List[str]) -> bool:
    return [*command[:1], *command[2:3]] == [_BEFORE[0], _BEFORE[2]]


def _of_host(state: Dict[str, Any], host: Dict[str, Any]) -> List[Tuple[str, Any, Any]]:
    """What of the host the container was to get, and what it got; what Docker does not tell is left out."""
    mounts = {one.get("Target"): one.get("Source") for one in host.get("Mounts") or []}
    bindings = (host.get("PortBindings") or {}).get("%d/tcp" % PORT) or []
    found: List[Tuple[str, Any, Any]] = [
        (what, state.get(key), mounts[target])
        for what, key, target in (
            ("model", "model_directory", MODEL_DIRECTORY),
            ("draft model", "drafter_directory", DRAFTER_DIRECTORY),
        )
        if target in mounts
    ]
    if bindings:
        found.append(("port", str(state.get("port")), str(bindings[0].get("HostPort"))))
    cards = sorted(
        _card(name) for one in host.get("DeviceRequests") or [] for name in one.get("DeviceIDs") or []
    )
    if cards and state.get("access") != "none":
        found.append(("set of cards", sorted(state.get("devices") or []), cards))
    return found


def _card(name: str) -> str:
    return name[len(_CDI) :] if name.startswith(_CDI) else name


def _told(was: List[str], now: List[str]) -> str:
    """Where two command lines differ: `--max-model-len 4096 instead of --max-model-len 8192`."""
    begin = _alike(was, now)
    end = _alike(was[begin:][::-1], now[begin:][::-1])
    # An option's name says what its value is of.
    first = next(iter(now[begin : len(now) - end] or was[begin : len(was) - end]), "")
    if begin and was[begin - 1].startswith("-") and not first.startswith("-"):
        begin -= 1
    return "%s instead of %s" % (_words(now[begin : len(now) - end]), _words(was[begin : len(was) - end]))


def _alike(one: List[str], other: List[str]) -> int:
    """How many words two lists begin with alike."""
    shorter = min(len(one), len(other))
    return next((n for n in range(shorter) if one[n] != other[n]), shorter)


def _words(words: List[str]) -> str:
    if not words:
        return "nothing"
    shown = [
        word if len(word) <= LONGEST_WORD else word[: LONGEST_WORD - 1] + "…" for word in words[:MOST_WORDS]
    ]
    return " ".join(shown) + (" …" if len(words) > MOST_WORDS else "")
