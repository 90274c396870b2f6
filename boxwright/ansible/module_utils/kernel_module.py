"""What the kernel has of the NVIDIA driver: built, loaded, in the way; and what follows from it."""

from __future__ import annotations

import os
from typing import List, NamedTuple, Optional

from ansible.module_utils import linux_texts, module_key, next_kernel, package_manager
from ansible.module_utils.command import Result, read, run

#: Modules of the driver that hold one another, in the order in which they can be taken out.
UNLOAD_ORDER = ("nvidia_drm", "nvidia_modeset", "nvidia_uvm", "nvidia_peermem", "nvidia")


class Build(NamedTuple):
    """One line of `dkms status`. state: "added", "built" or "installed"; kernel: "" for "added"."""

    name: str
    version: str
    kernel: str
    state: str


class State(NamedTuple):
    """What is there. on_disk: version of the module that the kernel would load, loaded: of the one in it.

    flavor_on_disk, flavor: `open` or `proprietary`, of the same two; None where they do not tell.
    headers: whether modules can be built for the running kernel. next_kernel: the one that boots next.
    """

    kernel: str
    next_kernel: str
    headers: bool
    builds: List[Build]
    on_disk: Optional[str]
    loaded: Optional[str]
    uvm: bool
    nouveau: bool
    flavor_on_disk: Optional[str] = None
    flavor: Optional[str] = None

    @property
    def other_flavor(self) -> bool:
        """Whether the loaded module is of the other flavor than the one on the disk.

        Both come in the same version, and only the open one brings up a Blackwell card.
        """
        return None not in (self.flavor, self.flavor_on_disk) and self.flavor != self.flavor_on_disk


def parse_dkms(text: str) -> List[Build]:
    """`dkms status`: "nvidia/580.105.08, 6.1.0-40-amd64, x86_64: installed", older "nvidia, 580…"."""
    builds = []
    for line in text.splitlines():
        head, colon, state = line.partition(":")
        words = [word.strip() for word in head.replace("/", ",", 1).split(",")]
        if colon and len(words) >= 2:
            kernel = words[2] if len(words) > 2 else ""
            builds.append(
                Build(words[0], words[1], kernel, state.split()[0].strip(",") if state.split() else "")
            )
    return [build for build in builds if build.name.startswith("nvidia")]


def headers_of(kernel: str, root: str = "") -> str:
    """The package of a kernel's headers, as the host's distribution names it."""
    if package_manager.name(root) == "dnf":
        return "kernel-devel-%s" % kernel
    return "linux-headers-%s" % kernel


def on_disk(kernel: str) -> bool:
    """Whether a kernel has a module of the driver to load, built here or by the distribution."""
    return bool(run(["modinfo", "-F", "version", "-k", kernel, "nvidia"]).rc == 0)


def read_state(root: str = "") -> State:
    """The host's state, from /sys, modinfo and dkms."""
    kernel = os.uname().release
    info = run(["modinfo", "-F", "version", "nvidia"])
    license_text = run(["modinfo", "-F", "license", "nvidia"])
    loaded = read("%s/sys/module/nvidia/version" % root)
    return State(
        kernel=kernel,
        next_kernel=next_kernel.named(root),
        headers=os.path.isdir("%s/lib/modules/%s/build" % (root, kernel)),
        builds=parse_dkms(run(["dkms", "status"]).stdout),
        on_disk=info.stdout.strip() or None if info.rc == 0 else None,
        loaded=loaded.strip() if loaded else None,
        uvm=os.path.isdir("%s/sys/module/nvidia_uvm" % root),
        nouveau=os.path.isdir("%s/sys/module/nouveau" % root),
        flavor_on_disk=linux_texts.module_flavor(license_text.stdout) if license_text.rc == 0 else None,
        flavor=linux_texts.loaded_driver(read("%s/proc/driver/nvidia/version" % root) or "")[1],
    )


def unbuilt(state: State, version: str, kernel: str) -> Optional[Build]:
    """The build that DKMS still owes `kernel` for the installed packages' version, or None."""
    ours = [build for build in state.builds if build.version == version]
    if not ours or any(build.kernel == kernel and build.state == "installed" for build in ours):
        return None
    return ours[0]


def explain_load(done: Result, kernel: str, root: str = "") -> str:
    """Why modprobe failed, for a person."""
    text = done.text
    if "Key was rejected" in text or "Required key not available" in text:
        return (
            "the kernel refuses the module because Secure Boot is on and the key that DKMS signs with is "
            "not enrolled: run `mokutil --import %s`, reboot and confirm the key at the console (or switch "
            "Secure Boot off), then rerun" % module_key.pair(root)[1]
        )
    if "No such device" in text:
        return (
            "the driver finds no NVIDIA card it can use: is one listed by `lspci -nn -d 10de:`, and is it "
            "free (not bound to vfio-pci or nouveau)?"
        )
    if "not found in directory" in text or "not found." in text:
        return (
            "there is no nvidia module for the running kernel %s: DKMS did not build it (`dkms status`; "
            "the log is /var/lib/dkms/nvidia/*/build/make.log)" % kernel
        )
    if "format" in text:
        return (
            "the module was built for another kernel than the running %s; `dkms status` shows for which"
            % kernel
        )
    return "modprobe failed: %s" % (text or "exit status %d" % done.rc)
