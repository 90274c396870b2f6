#!/usr/bin/python
"""Everything that planning needs to know of a host, in one trip: raw texts, for boxwright.facts.parse."""

from __future__ import annotations

import glob
import json
import os
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, List, Optional

from ansible.module_utils import (
    boot_commands,
    docker_said,
    docker_traces,
    driver_load,
    host_reading,
    module_key,
    next_kernel,
    nvidia_smi,
    package_facts,
    partial_file,
    port_rules,
    registry_access,
    registry_logins,
    role_receipts,
    shapes,
    way_out,
)
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.command import run
from ansible.module_utils.docker_api import Docker, DockerError
from ansible.module_utils.hub_lookup import Hub
from ansible.module_utils.modelscope_lookup import ModelScope
from ansible.module_utils.registry_lookup import cuda_env
from ansible.module_utils.shapes import TEXT, MapOf
from ansible.module_utils.web import Reader

DOCUMENTATION = r"""
module: host_facts
short_description: Read a host in one trip
description:
  - Reads hardware, driver, Docker, memory, filesystems, ports, store and releases.
  - Asks the model hub and the image registries what models and images are, without downloading them.
  - Changes nothing; every program and every request has a time limit.
options:
  root_dir: {type: path, default: /var/lib/boxwright, description: "Where models and releases are kept."}
  config_dir: {type: path, default: /etc/boxwright, description: "Where Boxwright's configuration is kept."}
  docker_root: {type: path, default: /var/lib/docker, description: "Docker's data root until Docker tells."}
  models:
    type: list
    elements: dict
    default: []
    description: "Models to look up: repo and revision, or path."
    options:
      repo: {type: str, description: "org/name on the hub."}
      revision: {type: str, description: "Branch, tag or commit; left out, the hub's default branch."}
      path: {type: path, description: "A directory on the host."}
  images: {type: list, elements: str, default: [], description: "Container images to look up."}
  ask_registries:
    description: "Whether registries are also asked of images that are here, for what their tags mean now."
    type: bool
    default: false
  digests: {type: dict, default: {}, description: "Image -> the digest that it was locked to."}
  hub: {type: str, choices: [huggingface, modelscope], default: huggingface, description: "Its protocol."}
  endpoint: {type: str, default: "https://huggingface.co", description: "The model hub."}
  token: {type: str, default: "", description: "The hub's token."}
  insecure_registries: {type: list, elements: str, default: [], description: "Registries read in plain HTTP."}
  registries:
    description: "Registries with a login or an authority of their own."
    type: list
    elements: dict
    default: []
    options:
      host: {type: str, required: true, description: "As in the names of its images."}
      username: {type: str, default: "", description: "Name of the login."}
      password: {type: str, default: "", description: "Its password."}
      ca: {type: str, default: "", description: "Certificate of its authority, as PEM text."}
  proxy: {type: str, default: "", description: "Proxy for http and https."}
  ca: {type: str, default: "", description: "Authorities that the host is about to trust, as PEM text."}
  no_proxy: {type: list, elements: str, default: [], description: "Hosts that are reached without it."}
  declared:
    type: dict
    default: {}
    description: "Role -> variable -> sha256 of its value, to be held against the roles' receipts."
author: [Boxwright maintainers]
"""
EXAMPLES = r"""
- name: What the host is
  host_facts:
    models: [{repo: RedHatAI/Qwen3.8-27B-INT4}]
    images: ["vllm/vllm-openai:v0.32.0"]
"""
RETURN = r"""
raw: {description: "Texts and values as read, for boxwright.facts.parse.", type: dict, returned: always}
"""

#: What is in its parameters of mappings.
SHAPES = {"digests": MapOf(TEXT), "declared": MapOf(MapOf(TEXT))}
#: A directory of the store: a commit, or what was made of it on the host (`<commit>-autoawq-w4g128`).
NAME = re.compile(r"(?P<revision>[0-9a-f]{40})(?P<made>-[a-z0-9-]+)?")
#: Version of the raw format, for facts recorded by another Boxwright.
FORMAT = 2
#: Seconds for one program: a driver that hangs must not hang the run.
COMMAND_TIMEOUT = 15
#: Seconds for all look-ups together, and for one wait of them.
LOOKUP_DEADLINE, LOOKUP_TIMEOUT = 45, 10

CDI_SPEC = "/etc/cdi/nvidia.yaml"
SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
#: By protocol: who asks a hub.
HUBS = {"huggingface": Hub, "modelscope": ModelScope}
COMMANDS = {
    "smi-version": ["nvidia-smi", "--version"],
    "modinfo": ["modinfo", "nvidia"],
    "dkms": ["dkms", "status"],
    "mokutil": ["mokutil", "--sb-state"],
    "sockets": ["ss", "-Hltnp"],
    "addresses": ["ip", "-j", "address", "show", "scope", "global"],
    "routes": ["ip", "-j", "route", "show", "default"],
    "toolkit": ["nvidia-ctk", "--version"],
    "cdi": ["nvidia-ctk", "cdi", "list"],
    "firewalld": ["systemctl", "is-active", "firewalld.service"],
}
#: How cards are linked, where there are several.
TOPOLOGY = ["nvidia-smi", "topo", "-m"]
FILES = {
    "os-release": "/etc/os-release",
    "meminfo": "/proc/meminfo",
    "cpuinfo": "/proc/cpuinfo",
    "nvidia": "/proc/driver/nvidia/version",
    "module-version": "/sys/module/nvidia/version",
    "boot-id": "/proc/sys/kernel/random/boot_id",
    "daemon-json": "/etc/docker/daemon.json",
    "ufw": "/etc/ufw/ufw.conf",
    "selinux": "/sys/fs/selinux/enforce",
}


def said(argv: List[str]) -> Dict[str, Any]:
    """What a program did, as raw values."""
    answer = run(argv, timeout=COMMAND_TIMEOUT)
    return {"rc": answer.rc, "stdout": answer.stdout, "stderr": answer.stderr}


def query_cards() -> Dict[str, Any]:
    """The cards' fields; a field that this driver does not know is left out and the others asked again."""
    fields = list(nvidia_smi.CARD_FIELDS)
    while True:
        query = "--query-gpu=" + ",".join(fields)
        answer = said(["nvidia-smi", query, "--format=csv,noheader"])
        unknown = nvidia_smi.bad_field(answer["stdout"], answer["stderr"])
        if unknown not in fields:
            return dict(answer, fields=fields)
        fields.remove(unknown)


def images(references: List[str], digests: Dict[str, str]) -> List[Dict[str, Any]]:
    """What the engine has of the images: digest, unpacked bytes, CUDA environment; none where it is silent.

    digests: reference -> the digest that is meant, whatever image has the tag here by now.
    """
    found, docker = [], Docker(timeout=COMMAND_TIMEOUT)
    for reference in references:
        exact = at_digest(reference, digests.get(reference))
        try:
            image = docker.inspected(exact)
        except DockerError:
            continue
        if image is not None:
            known = [text.partition("@")[2] for text in image.get("RepoDigests") or []]
            found.append(
                {
                    "reference": reference,
                    "present": True,
                    "size": image.get("Size"),
                    "digest": exact.partition("@")[2] or (known[0] if known else None),
                    "env": cuda_env((image.get("Config") or {}).get("Env")),
                }
            )
    return found


def at_digest(reference: str, digest: Optional[str]) -> str:
    """`repository@digest` of a reference with a tag; the reference as it is without a digest."""
    if not digest or "@" in reference:
        return reference
    place, slash, name = reference.rpartition("/")
    return "%s%s%s@%s" % (place, slash, name.partition(":")[0], digest)


def store(root: str, repo: str) -> List[Dict[str, Any]]:
    """Revisions of a model in the store, and what was made of them, with the store's own record of each."""
    folder = os.path.join(root, "models", repo.replace("/", "--"))
    found = []
    for directory in sorted(glob.glob(os.path.join(glob.escape(folder), "*"))):
        name = NAME.fullmatch(os.path.basename(directory))
        model = host_reading.model_directory(directory) if name else None
        if name and model:
            record = host_reading.intact_record(directory)
            origin = "made" if name.group("made") else "store"
            found.append(
                dict(model, origin=origin, repo=repo, revision=name.group("revision"), record=record)
            )
    return found


def staged(root: str, repo: str) -> List[Dict[str, Any]]:
    """Revisions of a model whose fetch was interrupted: the bytes of each file that are there already."""
    place = os.path.join(root, "models", ".staging", repo.replace("/", "--") + "--")
    found = []
    for directory in sorted(glob.glob(glob.escape(place) + "*")):
        revision, tree = directory[len(place) :], os.path.join(directory, "tree")
        if NAME.fullmatch(revision):
            files = [
                {"path": name, "size": size, "sha256": None}
                for name, size in sorted(partial_file.arrived(tree).items())
            ]
            found.append(
                {
                    "origin": "staged",
                    "repo": repo,
                    "revision": revision,
                    "directory": directory,
                    "files": files,
                }
            )
    return found


def on_disk(parameters: Dict[str, Any]) -> List[Dict[str, Any]]:
    """The models asked for that the host has: revisions in the store, directories by path."""
    found = []
    for model in parameters["models"]:
        if model.get("repo"):
            found += store(parameters["root_dir"], model["repo"])
            found += staged(parameters["root_dir"], model["repo"])
        elif model.get("path"):
            directory = host_reading.model_directory(model["path"])
            found.append(
                dict(
                    directory or {"error": "not-found", "detail": "there is no such directory"},
                    origin="path",
                    directory=model["path"],
                )
            )
    return found


def lookups(
    parameters: Dict[str, Any], have: List[Dict[str, Any]], local: List[Dict[str, Any]]
) -> Dict[str, Any]:
    """What hub and registries say of the models and images that the host does not have already."""
    authorities = [parameters["ca"]] if parameters["ca"] else []
    reader = Reader(LOOKUP_TIMEOUT, LOOKUP_DEADLINE, parameters["proxy"], authorities=authorities)
    hub = HUBS[parameters["hub"]](parameters["endpoint"], parameters["token"], reader)
    registry = registry_access.ask_as_docker(parameters, LOOKUP_TIMEOUT, LOOKUP_DEADLINE)
    whole = [
        model
        for model in have
        if model.get("record") and model["origin"] == "store" and not model.get("error")
    ]
    kept = {(model.get("repo"), model.get("revision")) for model in whole}
    here = {image["reference"] for image in local}
    models = [
        model
        for model in parameters["models"]
        if model.get("repo") and (model["repo"], model.get("revision")) not in kept
    ]
    missing = [
        reference
        for reference in parameters["images"]
        if parameters["ask_registries"] or reference not in here
    ]
    with ThreadPoolExecutor(max_workers=8) as pool:
        asked = [pool.submit(hub.model, model["repo"], model.get("revision")) for model in models]
        seen = [pool.submit(registry.image, reference) for reference in missing]
        return {"hub": [one.result() for one in asked], "registry": [one.result() for one in seen]}


def read(parameters: Dict[str, Any]) -> Dict[str, Any]:
    """The whole raw answer."""
    pci = host_reading.cards()
    asked = dict(COMMANDS, topology=TOPOLOGY) if len(pci) > 1 else COMMANDS
    with ThreadPoolExecutor(max_workers=6) as pool:
        running = {name: pool.submit(said, argv) for name, argv in asked.items()}
        engine = pool.submit(docker_said.look)
        cards, local = (
            pool.submit(query_cards),
            pool.submit(images, parameters["images"], parameters["digests"]),
        )
        have = pool.submit(on_disk, parameters)
        traces = pool.submit(docker_traces.look, parameters["docker_root"])
        receipts = pool.submit(role_receipts.compared, parameters["config_dir"], parameters["declared"])
        access = pool.submit(port_rules.look, parameters["config_dir"])
        packages = pool.submit(package_facts.look)
        web = pool.submit(lambda: lookups(parameters, have.result(), local.result()))
        told = packages.result()
        commands = dict({name: job.result() for name, job in running.items()}, cards=cards.result())
        commands.update(engine.result())
        commands.update({name: told[name] for name in ("packages", "holds", "rpms") if name in told})
        found = {
            "models": have.result() + web.result()["hub"],
            "images": local.result() + web.result()["registry"],
            "receipts": receipts.result(),
        }
    uname, waiting = os.uname(), next_kernel.named()
    paths = {
        parameters["root_dir"],
        parameters["config_dir"],
        parameters["docker_root"],
        "/",
        "/tmp",
        "/var/tmp",
        "/var/cache",
        "/usr",
        _data_root(commands["docker-info"]) or "/",
    }
    files = {name: host_reading.text(path) for name, path in FILES.items()}
    return dict(
        found,
        format=FORMAT,
        commands=commands,
        docker_traces=traces.result(),
        files=dict(files, **{"daemon-json": host_reading.masked(files["daemon-json"] or "")}),
        uname={"release": uname.release, "machine": uname.machine},
        cpus=os.cpu_count() or 0,
        pci=pci,
        nouveau=os.path.isdir("/sys/module/nouveau"),
        secure_boot=host_reading.binary_hex(SECURE_BOOT),
        signing_key=module_key.look(),
        efi=os.path.isdir("/sys/firmware/efi"),
        headers=os.path.isdir("/lib/modules/%s/build" % uname.release),
        next_kernel=waiting,
        next_headers=os.path.isdir("/lib/modules/%s/build" % waiting),
        unowned=host_reading.unowned(host_reading.driver_files()),
        reboot_required=os.path.exists("/run/reboot-required"),
        filesystems=[host_reading.filesystem(path) for path in sorted(paths)],
        releases=host_reading.releases(os.path.join(parameters["root_dir"], "releases")),
        tuning=host_reading.text(os.path.join(parameters["config_dir"], "gpu-tuning.json")),
        kept=host_reading.kept(parameters["config_dir"]),
        registries=registry_logins.kept(parameters["config_dir"]),
        cdi_driver=host_reading.cdi_driver(CDI_SPEC),
        driver_load=driver_load.identity(),
        boot_commands=boot_commands.found(),
        port_access=access.result(),
        locked=told.get("locked", []),
        repositories=[
            dict(one, **{"from": host_reading.masked(one["from"])}) for one in told.get("repositories", [])
        ],
        # The last thing: its answer is on the way a moment later, to be compared with the controller's.
        clock={"host": int(time.time())},
    )


def _data_root(info: Dict[str, Any]) -> str:
    try:
        return str(json.loads(info["stdout"]).get("DockerRootDir") or "") if info["rc"] == 0 else ""
    except (AttributeError, ValueError):
        return ""


def main() -> None:
    """The module."""
    model = {"repo": {"type": "str"}, "revision": {"type": "str"}, "path": {"type": "path"}}
    module = AnsibleModule(
        supports_check_mode=True,
        argument_spec={
            "root_dir": {"type": "path", "default": "/var/lib/boxwright"},
            "config_dir": {"type": "path", "default": "/etc/boxwright"},
            "docker_root": {"type": "path", "default": "/var/lib/docker"},
            "models": {"type": "list", "elements": "dict", "default": [], "options": model},
            "images": {"type": "list", "elements": "str", "default": []},
            "ask_registries": {"type": "bool", "default": False},
            "digests": {"type": "dict", "default": {}},
            "hub": {"type": "str", "choices": sorted(HUBS), "default": "huggingface"},
            "endpoint": {"type": "str", "default": "https://huggingface.co"},
            "token": {"type": "str", "default": "", "no_log": True},
            "insecure_registries": {"type": "list", "elements": "str", "default": []},
            "registries": registry_access.ARGUMENT,
            "proxy": {"type": "str", "default": ""},
            "no_proxy": {"type": "list", "elements": "str", "default": []},
            "ca": {"type": "str", "default": ""},
            "declared": {"type": "dict", "default": {}, "no_log": True},
        },
    )
    shapes.refuse(module, SHAPES)
    way_out.follow(module)
    module.exit_json(changed=False, raw=read(module.params))


if __name__ == "__main__":
    main()
