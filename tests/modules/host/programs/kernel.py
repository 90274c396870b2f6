"""modprobe, modinfo, dkms, systemctl and nvidia-smi over a world in small.

World: {root, on_disk, flavor, in_use, refuses, dkms, daemon, initramfs, dracut, default_kernel, libraries}.
Loaded modules are directories of root/sys/module. flavor: of the module on the disk. daemon: {load, enabled,
active}. libraries: their version, if not that of the loaded module. dracut: its exit status, 127 where it is
not there. default_kernel: what grubby names, None where it is not there.
"""

import shutil
from pathlib import Path

NAMES = ["modprobe", "modinfo", "dkms", "systemctl", "update-initramfs", "dracut", "grubby", "nvidia-smi"]
LICENSES = {"open": "Dual MIT/GPL", "proprietary": "NVIDIA"}
#: /proc/driver/nvidia/version, as the two flavors write it.
BANNERS = {
    "open": "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  %s  Release Build  (root@host)\n",
    "proprietary": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  %s  Fri Sep 12 20:45:03 UTC 2025\n",
}
DEPENDS = {"nvidia_uvm": ["nvidia"], "nvidia_drm": ["nvidia"]}


def run(name, words, world):
    if name == "modinfo":
        kernel = words[words.index("-k") + 1] if "-k" in words else None
        if not world["on_disk"] or (kernel and kernel not in world["dkms"] + world.get("prebuilt", "")):
            return 1, "", "modinfo: ERROR: not found\n"
        told = {"version": world["on_disk"], "license": LICENSES[world["flavor"]]}
        return 0, told[words[1]] + "\n", ""
    if name == "modprobe":
        return modprobe(words, world)
    if name == "dkms":
        return dkms(words, world)
    if name == "update-initramfs":
        return world["initramfs"], "", "no space left\n" if world["initramfs"] else ""
    if name == "dracut":
        status = world.get("dracut", 127)
        return status, "", "dracut: FAILED: No space left on device\n" if status == 1 else ""
    if name == "grubby":
        default = world.get("default_kernel")
        return (0, f"/boot/vmlinuz-{default}\n", "") if default else (127, "", "grubby: not found\n")
    if name == "nvidia-smi":
        return nvidia_smi(world)
    return systemctl(words, world)


def nvidia_smi(world):
    if not loaded(world, "nvidia").is_dir():
        return 9, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", ""
    libraries, module = world.get("libraries"), (loaded(world, "nvidia") / "version").read_text().strip()
    if libraries and libraries != module:
        short = ".".join(libraries.split(".")[:2])
        text = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: "
        return 18, text + short, ""
    return 0, f"0, GPU-0, {module}\n", ""


def loaded(world, module):
    return Path(world["root"], "sys/module", module)


def modprobe(words, world):
    if words[0] != "-r":
        if world.get("refuses"):
            return 1, "", world["refuses"]
        if words[0] == "nouveau" and world.get("nouveau_refuses"):
            return 1, "", "modprobe: ERROR: could not insert 'nouveau': Invalid argument\n"
        module = loaded(world, words[0].replace("-", "_"))
        module.mkdir(parents=True, exist_ok=True)
        if words[0] == "nouveau":
            return 0, "", ""
        (module / "version").write_text(world["on_disk"] + "\n")
        banner = Path(world["root"], "proc/driver/nvidia/version")
        banner.parent.mkdir(parents=True, exist_ok=True)
        banner.write_text(BANNERS[world["flavor"]] % world["on_disk"])
        return 0, "", ""
    module = words[1]
    busy = module in world["in_use"] or any(
        module in needs and loaded(world, user).is_dir() for user, needs in DEPENDS.items()
    )
    if busy or (module == "nvidia" and world["daemon"]["active"] == "active"):
        return 1, "", f"modprobe: FATAL: Module {module} is in use.\n"
    shutil.rmtree(loaded(world, module))
    return 0, "", ""


def dkms(words, world):
    if words[0] == "status":
        return 0, world["dkms"], ""
    if world.get("build_fails"):
        return 10, "", "Error! Bad return status for module build\n"
    version = words[2].partition("/")[2]
    world["dkms"] += f"nvidia/{version}, {words[4]}, x86_64: installed\n"
    world["on_disk"] = version
    return 0, "", ""


def systemctl(words, world):
    daemon = world["daemon"]
    if words[0] == "show":
        return (
            0,
            f"LoadState={daemon['load']}\nActiveState={daemon['active']}\nUnitFileState={daemon['enabled']}\n",
            "",
        )
    if words[0] == "stop":
        daemon["active"] = "inactive"
    elif words[0] == "enable":
        daemon.update(enabled="enabled", active="active")
    elif words[0] == "start":
        daemon["active"] = "active"
    return 0, "", ""
