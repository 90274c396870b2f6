"""OCI hooks: nvidia-container-runtime-hook (for `docker run --gpus`) and nvidia-cdi-hook (for CDI)."""

from __future__ import annotations

import argparse
import glob
import json
import os
import subprocess
import sys
from typing import Any, Dict, List, Optional

from .. import rig
from . import nvml


def runtime_hook(_version: str, arguments: Optional[List[str]] = None) -> int:
    """`nvidia-container-runtime-hook prestart`, with the container's state on stdin.

    The container's files are in place and its root is not yet changed: what is mounted below the bundle's
    root in the container's mount namespace will be there when it starts.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments == ["inject"]:
        return _inject(json.load(sys.stdin))
    if arguments[-1:] != ["prestart"]:
        return 0
    state = json.load(sys.stdin)
    root, environment = container(state["bundle"])
    wanted = environment.get("NVIDIA_VISIBLE_DEVICES", "")
    if wanted in ("", "void"):
        return 0
    print("Auto-detected mode as 'legacy'", file=sys.stderr)
    try:
        driver = nvml.driver()
        nvml.load_modules()
        cards = chosen(list(driver.cards), wanted)
    except nvml.NvmlError as error:
        print("nvidia-container-cli: initialization error: nvml error: " + error.text, file=sys.stderr)
        return 1
    except KeyError as error:
        print("nvidia-container-cli: device error: %s: unknown device" % error.args[0], file=sys.stderr)
        return 1
    common = nvml.common(driver.version)
    capabilities = environment.get("NVIDIA_DRIVER_CAPABILITIES") or "utility,compute"
    mounts = [
        path
        for path in common.mounts
        if path != "/usr/bin/nvidia-smi" or {"all", "utility"} & set(capabilities.split(","))
    ]
    order = {
        "root": root,
        "mounts": mounts,
        "nodes": common.nodes + [nvml.card_node(card) for card in cards],
        "libraries": nvml.LIBRARIES,
    }
    entered = ["nsenter", "--target", str(state["pid"]), "--mount", "--", sys.argv[0], "inject"]
    return subprocess.run(entered, input=json.dumps(order).encode(), check=False, timeout=60).returncode


def container(bundle: str) -> Any:
    """The root directory and the environment of the container in a bundle."""
    with open(os.path.join(bundle, "config.json"), encoding="utf-8") as stream:
        configuration = json.load(stream)
    environment = dict(
        entry.split("=", 1) for entry in configuration["process"].get("env", []) if "=" in entry
    )
    return os.path.join(bundle, configuration["root"]["path"]), environment


def chosen(cards: List[rig.Card], wanted: str) -> List[rig.Card]:
    """The cards that NVIDIA_VISIBLE_DEVICES names. Raises KeyError for one that is not there."""
    if wanted == "all":
        return cards
    found = []
    for name in wanted.split(",") if wanted != "none" else []:
        matching = [card for card in cards if name in (str(card.index), card.uuid)]
        if not matching:
            raise KeyError(name)
        found += matching
    return found


def _inject(order: Dict[str, Any]) -> int:
    """In the container's mount namespace: mount the files, make the device nodes and the libraries' links."""
    root = order["root"]
    for path in order["mounts"]:
        target = root + path
        if os.path.isdir(path):
            os.makedirs(target, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if not os.path.lexists(target):
                with open(target, "w", encoding="utf-8"):
                    pass
        subprocess.run(["mount", "--bind", path, target], check=True, timeout=30)
        subprocess.run(["mount", "-o", "remount,bind,ro,nosuid,nodev", target], check=True, timeout=30)
    for path in order["nodes"]:
        device = os.stat(path)
        if not os.path.exists(root + path):
            os.mknod(root + path, device.st_mode, device.st_rdev)
            os.chmod(root + path, 0o666)
    link_libraries(root, order["libraries"])
    return 0


def link_libraries(root: str, folder: str) -> None:
    """Make libX.so.1 for every libX.so.VERSION of the driver, as ldconfig does by the libraries' names."""
    for path in glob.glob(root + folder + "/lib*.so.[0-9]*.[0-9]*"):
        link = path.split(".so.", 1)[0] + ".so.1"
        if not os.path.lexists(link):
            os.symlink(os.path.basename(path), link)


def cdi_hook(version: str, arguments: Optional[List[str]] = None) -> int:
    """`nvidia-cdi-hook {create-symlinks, update-ldcache}`, with the container's state on stdin."""
    parser = argparse.ArgumentParser(prog="nvidia-cdi-hook", allow_abbrev=False)
    parser.add_argument("--version", action="version", version="NVIDIA CDI Hook version " + version)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("create-symlinks").add_argument("--link", action="append", default=[])
    verbs.add_parser("update-ldcache").add_argument("--folder", action="append", default=[])
    options = parser.parse_args(arguments)
    root, _ = container(json.load(sys.stdin)["bundle"])
    if options.verb == "update-ldcache":
        for folder in options.folder:
            link_libraries(root, folder)
        return 0
    for entry in options.link:
        target, _, link = entry.partition("::")
        os.makedirs(os.path.dirname(root + link), exist_ok=True)
        if not os.path.lexists(root + link):
            os.symlink(target, root + link)
    return 0
