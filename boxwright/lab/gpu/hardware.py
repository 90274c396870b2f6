"""What a simulated host has as hardware and kernel, before anything is installed on it."""

from __future__ import annotations

import json
import platform

from boxwright.lab.gpu import deb, source
from boxwright.lab.gpu.packages import kernel as kernel_packages
from boxwright.lab.payload import Payload
from boxwright.lab.rigs import Rig

#: Programs of the kernel's tools and of the firmware's, with the functions that stand in for them.
PROGRAMS = {
    "modprobe": ("commands.modprobe", "modprobe"),
    "rmmod": ("commands.modprobe", "rmmod"),
    "modinfo": ("commands.modinfo", "modinfo"),
    "lsmod": ("commands.modinfo", "lsmod"),
    "depmod": ("commands.modinfo", "depmod"),
    "mokutil": ("commands.modinfo", "mokutil"),
    "lab-gpu": ("commands.labgpu", "main"),
    "dmesg": ("commands.dmesg", "main"),
}
#: Those that PATH has to find before, or without, a program of the image.
IN_PATH = ("mokutil", "lab-gpu", "dmesg")
PARTS = (".", "kernel", "commands")
KERNEL_REPOSITORY = f"{source.LIBRARY}/kernel"
UNIT = f"""[Unit]
Description=Simulated NVIDIA hardware
Documentation=file:/etc/lab-gpu/rig.json
DefaultDependencies=no
After=local-fs.target systemd-tmpfiles-setup-dev.service
Before=sysinit.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={source.LIBRARY}/bin/lab-gpu boot

[Install]
WantedBy=sysinit.target
"""
APT_SOURCE = f"""Types: deb
URIs: file:{KERNEL_REPOSITORY}
Suites: ./
Trusted: yes
"""


def files(rig: Rig, kernel: str | None = None) -> list[Payload]:
    """The files of a host with the cards of `rig`, to be there before it boots.

    kernel: release of the kernel that the host will run on; that of this machine by default.
    """
    programs = {name: source.command(*function) for name, function in PROGRAMS.items()}
    return [
        Payload.text("/etc/lab-gpu/rig.json", json.dumps(rig.to_json(), indent=1, sort_keys=True) + "\n"),
        Payload.text("/etc/systemd/system/lab-gpu.service", UNIT),
        *(Payload(f"{source.LIBRARY}/{path}", content) for path, content in source.modules(PARTS).items()),
        *(Payload(f"{source.LIBRARY}/bin/{name}", content, 0o755) for name, content in programs.items()),
        *(Payload(f"/usr/local/bin/{name}", programs[name], 0o755) for name in IN_PATH),
        *_kernel_repository(kernel or platform.release()),
        Payload.text("/etc/apt/sources.list.d/lab-kernel.sources", APT_SOURCE),
    ]


def _kernel_repository(release: str) -> list[Payload]:
    """The kernel's packages: a flat repository of files, trusted as the image itself is."""
    debs = sorted(
        ((package, deb.build(package)) for package in kernel_packages.packages(release)),
        key=lambda item: item[0].filename,
    )
    index = deb.packages_index(debs)
    release_text = deb.release_file(
        {"Packages": index}, "Boxwright lab", "Boxwright lab kernel", Architectures="amd64"
    )
    return [
        *(Payload(f"{KERNEL_REPOSITORY}/{package.filename}", content) for package, content in debs),
        Payload(f"{KERNEL_REPOSITORY}/Packages", index),
        Payload(f"{KERNEL_REPOSITORY}/Release", release_text),
    ]
