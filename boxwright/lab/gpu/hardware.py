"""What a simulated host has as hardware and kernel, before anything is installed on it."""

from __future__ import annotations

import json
import platform

from boxwright.lab.gpu import deb, source
from boxwright.lab.gpu.deb import Package
from boxwright.lab.gpu.packages import distribution
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
APT_SOURCE = """Types: deb
URIs: file:{repository}
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
        *local_repository("kernel", kernel_packages.packages(kernel or platform.release()), "Boxwright lab"),
        *local_repository("distribution", distribution.packages(), "Debian"),
    ]


def local_repository(name: str, packages: list[Package], origin: str, **release: str) -> list[Payload]:
    """A flat repository of files, and apt's word for it: trusted as the image itself is.

    release: further fields of its Release file.
    """
    at = f"{source.LIBRARY}/{name}"
    debs = sorted(((package, deb.build(package)) for package in packages), key=lambda item: item[0].filename)
    index = deb.packages_index(debs)
    label, fields = f"Boxwright lab {name}", {"Architectures": "amd64", **release}
    release_file = deb.release_file({"Packages": index}, origin, label, **fields)
    return [
        *(Payload(f"{at}/{package.filename}", content) for package, content in debs),
        Payload(f"{at}/Packages", index),
        Payload(f"{at}/Release", release_file),
        Payload.text(f"/etc/apt/sources.list.d/lab-{name}.sources", APT_SOURCE.format(repository=at)),
    ]
