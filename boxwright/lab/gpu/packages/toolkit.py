"""The container toolkit's packages, as its repository and the driver's have them.

Files, units and dependencies follow the project's own packaging (github.com/NVIDIA/nvidia-container-toolkit).
"""

from __future__ import annotations

from boxwright.lab.gpu import source
from boxwright.lab.gpu.deb import File, Package

#: 1.18 is the last to write CDI 0.5.0; 1.19 writes 0.7.0.
RELEASES = ("1.18.1", "1.19.0")
BUNDLE = "/usr/lib/nvidia-container-toolkit/toolkit.zip"
OLD_PACKAGES = "nvidia-container-runtime (<= 3.5.0-1), nvidia-container-runtime-hook"
REFRESH_SERVICE = """[Unit]
Description=Refresh NVIDIA CDI specification file
ConditionPathExists=/usr/bin/nvidia-smi
ConditionPathExists=/usr/bin/nvidia-ctk

[Service]
Type=oneshot
Environment=NVIDIA_CTK_CDI_OUTPUT_FILE_PATH=/var/run/cdi/nvidia.yaml
EnvironmentFile=-/etc/nvidia-container-toolkit/nvidia-cdi-refresh.env
ExecCondition=/usr/bin/grep -qE '/nvidia\\.ko' /lib/modules/%v/modules.dep
ExecStart=/usr/bin/nvidia-ctk cdi generate
RemainAfterExit=yes

[Install]
WantedBy=multi-user.target
"""
REFRESH_PATH = """[Unit]
Description=Trigger CDI refresh on NVIDIA driver install / uninstall events

[Path]
PathChanged=/lib/modules/%v/modules.dep
PathChanged=/lib/modules/%v/modules.dep.bin

[Install]
WantedBy=multi-user.target
"""
BASE_POSTINST = """#!/bin/sh
set -e
if [ "$1" = configure ]; then
    nvidia-ctk --quiet config --config-file=/etc/nvidia-container-runtime/config.toml --in-place
    if [ -d /run/systemd/system ]; then
        systemctl daemon-reload || true
        systemctl enable --now nvidia-cdi-refresh.path || true
        systemctl enable --now nvidia-cdi-refresh.service || true
    fi
fi
"""
BASE_PRERM = """#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
    systemctl disable --now nvidia-cdi-refresh.path nvidia-cdi-refresh.service || true
fi
"""


def packages() -> list[Package]:
    """Every package of every release."""
    return [package for release in RELEASES for package in release_packages(release)]


def release_packages(release: str) -> list[Package]:
    """The four packages of one release."""
    version = f"{release}-1"
    bundle = source.archive(source.modules([".", "toolkit"]) | source.modules(["smi"]))

    def program(name: str, module: str, function: str) -> File:
        text = (
            f"#!/usr/bin/python3 -ES\nimport sys\n\nsys.path.insert(0, {BUNDLE!r})\n"
            f"from labgpu.toolkit.{module} import {function}  # noqa: E402\n\n"
            f"sys.exit({function}({release!r}))\n"
        )
        return File(f"/usr/bin/{name}", text.encode(), 0o755)

    library = f"/usr/lib/x86_64-linux-gnu/libnvidia-container.so.{release}"
    return [
        Package(
            "libnvidia-container1",
            version,
            "NVIDIA container runtime library",
            (
                File(library, source.ELF_HEADER),
                File("/usr/lib/x86_64-linux-gnu/libnvidia-container.so.1", link=library.rsplit("/", 1)[1]),
            ),
        ),
        Package(
            "libnvidia-container-tools",
            version,
            "NVIDIA container runtime library (command-line tools)",
            (program("nvidia-container-cli", "runtime", "cli"),),
            {"Depends": f"libnvidia-container1 (>= {version}), nvidia-container-toolkit-base (= {version})"},
        ),
        Package(
            "nvidia-container-toolkit-base",
            version,
            "NVIDIA Container Toolkit Base",
            (
                File(BUNDLE, bundle),
                program("nvidia-ctk", "ctk", "main"),
                program("nvidia-cdi-hook", "hooks", "cdi_hook"),
                program("nvidia-container-runtime", "runtime", "runtime"),
                File("/etc/systemd/system/nvidia-cdi-refresh.service", REFRESH_SERVICE.encode()),
                File("/etc/systemd/system/nvidia-cdi-refresh.path", REFRESH_PATH.encode()),
            ),
            {"Depends": "python3 (>= 3.9)"},
            {"postinst": BASE_POSTINST, "prerm": BASE_PRERM},
            section="utils",
            conffiles=(
                "/etc/systemd/system/nvidia-cdi-refresh.service",
                "/etc/systemd/system/nvidia-cdi-refresh.path",
            ),
        ),
        Package(
            "nvidia-container-toolkit",
            version,
            "NVIDIA Container toolkit",
            (
                program("nvidia-container-runtime-hook", "hooks", "runtime_hook"),
                File("/usr/bin/nvidia-container-toolkit", link="nvidia-container-runtime-hook"),
            ),
            {
                "Depends": f"nvidia-container-toolkit-base (= {version}), "
                f"libnvidia-container-tools (>= {version}), "
                "libnvidia-container-tools (<< 2.0.0), util-linux",
                "Breaks": OLD_PACKAGES,
                "Replaces": OLD_PACKAGES,
            },
            section="utils",
        ),
    ]
