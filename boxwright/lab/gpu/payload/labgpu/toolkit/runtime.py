"""nvidia-container-runtime (an OCI runtime that adds the hook, then is runc) and nvidia-container-cli."""

from __future__ import annotations

import json
import os
import sys
from typing import List, Optional

from . import hooks, nvml

HOOK = "/usr/bin/nvidia-container-runtime-hook"


def runtime(version: str, arguments: Optional[List[str]] = None) -> int:
    """Add the prestart hook to a container that is created with NVIDIA_VISIBLE_DEVICES, then become runc."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments == ["--version"]:
        print("NVIDIA Container Runtime version " + version)
    elif "create" in arguments:
        bundle = "."
        for position, word in enumerate(arguments):
            if word in ("--bundle", "-b"):
                bundle = arguments[position + 1]
            elif word.startswith("--bundle="):
                bundle = word.split("=", 1)[1]
        if hooks.container(bundle)[1].get("NVIDIA_VISIBLE_DEVICES", "") not in ("", "void"):
            _add_hook(os.path.join(bundle, "config.json"))
    os.execvp("runc", ["runc", *arguments])


def _add_hook(path: str) -> None:
    with open(path, encoding="utf-8") as stream:
        configuration = json.load(stream)
    prestart = configuration.setdefault("hooks", {}).setdefault("prestart", [])
    if not any(hook["path"] == HOOK for hook in prestart):
        prestart.append({"path": HOOK, "args": [os.path.basename(HOOK), "prestart"]})
        with open(path, "w", encoding="utf-8") as stream:
            json.dump(configuration, stream)


def cli(version: str, arguments: Optional[List[str]] = None) -> int:
    """`nvidia-container-cli {--version, info, list}`."""
    arguments = [word for word in (sys.argv[1:] if arguments is None else arguments) if word != "-k"]
    if arguments in (["--version"], ["-V"]):
        print("cli-version: %s\nlib-version: %s" % (version, version))
        return 0
    try:
        driver = nvml.driver()
    except nvml.NvmlError as error:
        print("nvidia-container-cli: initialization error: nvml error: " + error.text, file=sys.stderr)
        return 1
    if arguments == ["info"]:
        print("NVRM version:   %s\nCUDA version:   %s" % (driver.version, driver.cuda))
        for card in driver.cards:
            print(
                "\nDevice Index:   %d\nDevice Minor:   %d\nModel:          %s\nBrand:          GeForce\n"
                "GPU UUID:       %s\nBus Location:   %s\nArchitecture:   %s"
                % (card.index, card.index, card.name, card.uuid, card.smi_bus_id, card.compute_capability)
            )
        return 0
    if arguments == ["list"]:
        common = nvml.common(driver.version)
        print("\n".join(common.nodes + [nvml.card_node(card) for card in driver.cards] + common.mounts))
        return 0
    print("nvidia-container-cli: unrecognized command %s" % arguments, file=sys.stderr)
    return 1
