#!/usr/bin/python
"""Ansible module: each deployment's release lies on the host, ready to be started."""

from __future__ import annotations

import os
import secrets
from typing import Any, Dict, List, Optional

from ansible.module_utils import cdi
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.command import ensure, read, run
from ansible.module_utils.docker_api import Docker, DockerError, Image, parse_reference
from ansible.module_utils.engine_container import GUARD_FILE
from ansible.module_utils.engine_owner import make_cache, unreadable
from ansible.module_utils.engine_parse import parsed
from ansible.module_utils.engine_state import KEY_MODE, guard_source, key_path, state_of
from ansible.module_utils.engine_store import Store, release_id
from ansible.module_utils.engine_unit import refusals, unit_text
from ansible.module_utils.nvidia_smi import outcome, query, whole

DOCUMENTATION = r"""
module: engine_release
short_description: Each deployment's release lies on the host, ready to be started
description:
  - Makes, for every deployment whose image is on the host, the release that the plan asks for (directory,
    unit text,
    API key, cache directory). Touches nothing that runs.
  - Tells which images are not here yet; called again after they were fetched it makes the rest.
options:
  deployments: {type: list, elements: dict, required: true, description: "Deployments of the plan."}
  digests:
    description: "Deployment -> manifest digest that its image is locked to."
    type: dict
    default: {}
  api_keys:
    description: "Deployment -> key declared for it; others get one made here."
    type: dict
    default: {}
  root_dir: {type: path, required: true, description: "Where releases and caches lie."}
  config_dir: {type: path, required: true, description: "Where the keys lie."}
  stop_timeout_s:
    description: "Seconds an engine has to end after SIGTERM, its running requests included."
    type: int
    default: 30
  drain_seconds: {type: int, default: 60, description: "Of these, what its running requests may take."}
  restart_limit:
    description: "Starts within restart_window_s after which systemd gives up."
    type: int
    default: 5
  restart_window_s: {type: int, default: 1800, description: "Seconds; see restart_limit."}
"""
RETURN = r"""
releases: {type: dict, description: "Deployment -> id of its release, where it could be made."}
images_missing: {type: list, description: "Images to be fetched: name of the deployment, image, digest."}
digests: {type: dict, description: "Deployment -> {image, digest} that its image came to."}
"""


class ReleaseError(Exception):
    """A release cannot be made; the text says why and what to do."""


class Host:
    """What of the host goes into a release: the engine, its images, its cards."""

    def __init__(self) -> None:
        self.docker = Docker()
        self._uuids: Optional[Dict[int, str]] = None
        self._names: Optional[List[str]] = None

    def image(self, deployment: Dict[str, Any], digest: Optional[str]) -> Optional[Image]:
        """The deployment's image, at the locked digest where there is one; None when it is not here."""
        wanted = parse_reference(deployment["image"]).pinned(digest) if digest else deployment["image"]
        found: Optional[Image] = self.docker.image(wanted)
        return found

    def access(self) -> str:
        """How containers get cards: "cdi", or "gpus" before Docker 25, which has no CDI."""
        major = self.docker.version().partition(".")[0]
        return "cdi" if major.isdigit() and int(major) >= 25 else "gpus"

    def devices(self, access: str, indices: List[int], planned: List[str]) -> List[str]:
        """The cards' names for the container: UUIDs, which stay when a card is added; else indices.

        planned: the UUIDs that the plan was made for; empty when it was made before a driver was loaded.
        """
        if not indices:
            return []
        uuids = self._cards()
        missing = [str(index) for index in indices if index not in uuids]
        if missing:
            raise ReleaseError(
                "card %s is not here; nvidia-smi shows %s"
                % (", ".join(missing), ", ".join(map(str, sorted(uuids))) or "none")
            )
        strange = sorted(set(planned) - {uuids[index] for index in indices})
        if strange:
            raise ReleaseError(
                "the plan was made for card %s, which is not at its place any more; run again"
                % ", ".join(strange)
            )
        if access == "gpus":
            return [uuids[index] for index in indices]
        known = self._cdi_names()
        chosen = [uuids[index] if uuids[index] in known else str(index) for index in indices]
        unknown = [name for name in chosen if name not in known]
        if unknown:
            raise ReleaseError(
                "the CDI specification (%s) does not know card %s, only %s: role container_runtime "
                "writes it anew" % (cdi.SPEC_PATH, ", ".join(unknown), ", ".join(known) or "none")
            )
        return chosen

    def _cards(self) -> Dict[int, str]:
        if self._uuids is None:
            done = run(["nvidia-smi", "--query-gpu=index,uuid", "--format=csv,noheader"])
            said = outcome(done.rc, done.stdout, done.stderr)
            if said != "ok":
                raise ReleaseError("the cards do not answer (%s): %s" % (said, done.text))
            rows = query(done.stdout, done.stderr, ["index", "uuid"]).rows
            found = {whole(row["index"]): row["uuid"] for row in rows}
            self._uuids = {
                index: uuid for index, uuid in found.items() if index is not None and uuid is not None
            }
        return self._uuids

    def _cdi_names(self) -> List[str]:
        if self._names is None:
            try:
                self._names = cdi.devices()
            except cdi.CdiError as error:
                raise ReleaseError("the cards cannot be given to containers: %s" % error) from error
        return self._names


def ensure_key(path: str, declared: Optional[str], check: bool, as_option: bool = False) -> bool:
    """Have a key in its file, for root and its group: the declared one, else the one there, else a new one.

    as_option: the engine takes it from a file of options, where a dash in front would make it an option.
    """
    present = (read(path) or "").strip()
    key = declared or present or secrets.token_hex(32)
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ReleaseError(
            "the declared api_key has characters that cannot stand in an HTTP header: use letters, "
            "digits and punctuation"
        )
    if as_option and key.startswith("-"):
        raise ReleaseError("the api_key begins with a dash, which this engine would take for an option")
    if not check:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    return bool(ensure(path, key + "\n", KEY_MODE, check=check))


class Result:
    """What the module found and did, deployment by deployment."""

    def __init__(self) -> None:
        self.changed = False
        self.releases: Dict[str, str] = {}
        self.missing: List[Dict[str, Any]] = []
        self.digests: Dict[str, Dict[str, str]] = {}
        self.diff: List[Dict[str, str]] = []
        self.said: List[str] = []
        self.doubts: List[str] = []


def prepare(
    deployment: Dict[str, Any], host: Host, params: Dict[str, Any], check: bool, result: Result
) -> None:
    """Make one deployment's release, or say that its image is missing. Raises ReleaseError, DockerError."""
    name = deployment["name"]
    as_option = "option" in (deployment.get("runtime") or {}).get("key", {})
    declared = (params["api_keys"] or {}).get(name)
    if ensure_key(key_path(params["config_dir"], name), declared, check, as_option):
        result.changed = True
        result.said.append("%s: API key" % name)
    digest = params["digests"].get(name)
    image = host.image(deployment, digest)
    if image is None:
        result.missing.append({"name": name, "image": deployment["image"], "digest": digest})
        result.changed = result.changed or check
        return
    if image.digest:
        result.digests[name] = {"image": deployment["image"], "digest": image.digest}
    for directory in (deployment["model_directory"], (deployment.get("drafter") or {}).get("directory")):
        if directory and not check and not os.path.isdir(directory):
            raise ReleaseError(
                "%s is not there: the roles model_weights and model_quantize bring it" % directory
            )
    access = host.access()
    devices = host.devices(access, deployment.get("gpus") or [], deployment.get("devices") or [])
    state = state_of(deployment, image, access, devices, params, _user(deployment, result))
    wrong = refusals(state)
    if wrong:
        raise ReleaseError("\n".join(wrong))
    release = release_id(state)
    try:
        unit = unit_text(state, release)
    except ValueError as error:
        raise ReleaseError(str(error)) from error
    store = Store(params["root_dir"], name)
    program = (deployment.get("runtime") or {}).get("parse")
    if program and not check and store.link("current") and store.read(release) is None:
        _refuse_options(state, program, result)
    if not check:
        make_cache(state["cache_directory"], state.get("user"))
    before = store.read(store.link("current"))
    result.releases[name] = release
    files = {GUARD_FILE: guard_source()} if state.get("guard") else {}
    if store.write(release, state, deployment, unit, check=check, files=files):
        result.changed = True
        result.said.append("%s: release %s" % (name, release))
        result.diff.append(
            {
                "before_header": "%s, release %s" % (name, before.id if before else "none"),
                "after_header": "%s, release %s" % (name, release),
                "before": before.unit if before else "",
                "after": unit,
            }
        )


def _user(deployment: Dict[str, Any], result: Result) -> Optional[str]:
    """The user that the engine runs as: the image's own, where that can read the weights; None for root."""
    user: Optional[str] = deployment.get("user")
    directories = (deployment["model_directory"], (deployment.get("drafter") or {}).get("directory"))
    for directory in directories if user else ():
        closed = unreadable(directory, str(user)) if directory else None
        if closed:
            result.doubts.append(
                "%s: its engine runs as root, since user %s of its image may not read %s: chmod -R go+rX %s"
                % (deployment["name"], user, closed, directory)
            )
            return None
    return user


def _refuse_options(state: Dict[str, Any], program: str, result: Result) -> None:
    """Before what serves is stopped: does the new image take these options? Raises ReleaseError."""
    found = parsed(state, program)
    image = state["reference"].partition("@")[0]
    if found.refusal:
        raise ReleaseError(
            "%s does not take its options: %s\nWhat serves was left as it is. What the plan does not write "
            "by itself stands in the deployment's extra_args and env" % (image, found.refusal)
        )
    if found.doubt:
        result.doubts.append(
            "%s: %s could not read its options beforehand: %s" % (state["name"], image, found.doubt)
        )


def main() -> None:
    """Prepare every deployment whose image is here."""
    module = AnsibleModule(
        argument_spec={
            "deployments": {"type": "list", "elements": "dict", "required": True},
            "digests": {"type": "dict", "default": {}},
            "api_keys": {"type": "dict", "default": {}, "no_log": True},
            "root_dir": {"type": "path", "required": True},
            "config_dir": {"type": "path", "required": True},
            "stop_timeout_s": {"type": "int", "default": 30},
            "drain_seconds": {"type": "int", "default": 60},
            "restart_limit": {"type": "int", "default": 5},
            "restart_window_s": {"type": "int", "default": 1800},
        },
        supports_check_mode=True,
    )
    host, result = Host(), Result()
    for deployment in module.params["deployments"]:
        name = deployment["name"]
        try:
            prepare(deployment, host, module.params, module.check_mode, result)
        except (ReleaseError, DockerError, OSError) as error:
            if module.check_mode and not isinstance(error, OSError):
                # On a host without driver or Docker the run would bring them first.
                result.changed = True
                result.said.append("%s: release, once driver and Docker are there" % name)
                continue
            module.fail_json(msg="%s: no release can be made: %s" % (name, error))
    for doubt in result.doubts:
        module.warn(doubt)
    module.exit_json(
        changed=result.changed,
        releases=result.releases,
        images_missing=result.missing,
        digests=result.digests,
        diff=result.diff,
        said="; ".join(result.said),
    )


if __name__ == "__main__":
    main()
