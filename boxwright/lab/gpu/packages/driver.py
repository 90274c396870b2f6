"""The driver's packages under the names of the vendor's Debian repositories; versions never mix.

Names: dpkg listings of Debian hosts with 595.58.03, and the vendor's installation guide ("compute-only":
nvidia-driver-cuda and a nvidia-kernel-*-dkms).
"""

from __future__ import annotations

from boxwright.lab.gpu import source
from boxwright.lab.gpu.deb import File, Package

#: Driver releases in the repositories; two of branch 580, so that an update within a branch can be seen.
RELEASES = ("570.195.03", "580.95.05", "580.105.08", "595.71.05")
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
OPEN, PROPRIETARY = "Dual MIT/GPL", "NVIDIA"
KERNEL_MODULES = ("nvidia", "nvidia-modeset", "nvidia-drm", "nvidia-uvm", "nvidia-peermem")
#: Revision of a pinning package: branch-revision, as the vendor numbers them.
PINNING_REVISION = "5"
#: What a pinning package holds to a branch or version.
PINNED = ("src:*nvidia*:any", "src:cuda-drivers:any", "*nvidia*", "libcuda*", "cuda-drivers*", "libxnvctrl*")

PERSISTENCED_UNIT = """[Unit]
Description=NVIDIA Persistence Daemon
Wants=syslog.target

[Service]
Type=forking
PIDFile=/run/nvidia-persistenced/nvidia-persistenced.pid
Restart=always
ExecStart=/usr/bin/nvidia-persistenced --verbose --user nvpd
ExecStopPost=/bin/rm -rf /run/nvidia-persistenced

[Install]
WantedBy=multi-user.target
"""
PERSISTENCED_POSTINST = """#!/bin/sh
set -e
if [ "$1" = configure ]; then
    getent passwd nvpd >/dev/null || useradd --system --user-group --home-dir /run/nvpd nvpd
    deb-systemd-helper unmask nvidia-persistenced.service >/dev/null || true
    deb-systemd-helper enable nvidia-persistenced.service >/dev/null || true
    if [ -d /run/systemd/system ]; then
        systemctl daemon-reload
        if [ -n "$2" ]; then action=restart; else action=start; fi
        deb-systemd-invoke $action nvidia-persistenced.service >/dev/null || true
    fi
fi
"""
PERSISTENCED_PRERM = """#!/bin/sh
set -e
if [ -d /run/systemd/system ] && [ "$1" = remove ]; then
    deb-systemd-invoke stop nvidia-persistenced.service >/dev/null || true
fi
"""
PERSISTENCED_POSTRM = """#!/bin/sh
set -e
if [ "$1" = purge ]; then deb-systemd-helper purge nvidia-persistenced.service >/dev/null || true; fi
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
"""
DKMS_POSTINST = """#!/bin/sh
set -e
if [ "$1" = configure ]; then
    /usr/lib/dkms/common.postinst {module} {version}
fi
"""
DKMS_PRERM = """#!/bin/sh
set -e
if [ -d /var/lib/dkms/{module}/{version} ]; then
    dkms remove -m {module} -v {version} --all
fi
"""


def packages() -> list[Package]:
    """Every package of every release."""
    branches = dict.fromkeys(release.split(".")[0] for release in RELEASES)
    return [
        *(package for release in RELEASES for package in release_packages(release)),
        *(pinning(branch, f"{branch}-{PINNING_REVISION}") for branch in branches),
        *(pinning(release, f"{release}-1") for release in RELEASES),
    ]


def release_packages(release: str, revision: str = "1", module: str = "nvidia") -> list[Package]:
    """The packages of one release. revision: of the packages; module: DKMS's name for the kernel modules."""
    version, branch = f"{release}-{revision}", release.split(".")[0]

    def package(
        name: str,
        description: str,
        *files: File,
        needs: str = "",
        scripts: dict[str, str] | None = None,
        **control: str,
    ) -> Package:
        depends = [need if "(" in need else f"{need} (= {version})" for need in needs.split(", ") if need]
        fields = {key.replace("_", "-"): value for key, value in control.items()}
        if depends:
            fields = {"Depends": ", ".join(depends), **fields}
        return Package(name, version, description, files, fields, scripts or {})

    return [
        package(
            "libnvidia-ml1",
            "NVIDIA Management Library (NVML) runtime library",
            *_library("libnvidia-ml.so", release, nvml(release)),
            needs="python3 (>= 3.9)",
        ),
        package(
            "libcuda1",
            "NVIDIA CUDA Driver Library",
            *_library("libcuda.so", release, source.ELF_HEADER),
            needs="libnvidia-ptxjitcompiler1",
            Recommends="nvidia-kernel-open-dkms | nvidia-kernel-dkms",
        ),
        package(
            "libcudadebugger1",
            "NVIDIA CUDA Debugger Library",
            *_library("libcudadebugger.so", release, source.ELF_HEADER),
            needs="libcuda1",
        ),
        package(
            "libnvidia-ptxjitcompiler1",
            "NVIDIA PTX JIT Compiler library",
            *_library("libnvidia-ptxjitcompiler.so", release, source.ELF_HEADER),
        ),
        package(
            "libnvidia-cfg1",
            "NVIDIA binary OpenGL/GLX configuration library",
            *_library("libnvidia-cfg.so", release, source.ELF_HEADER),
        ),
        package(
            "nvidia-modprobe",
            "utility to load NVIDIA kernel modules and create device nodes",
            File(
                "/usr/bin/nvidia-modprobe", source.command("commands.nvidiamodprobe", "main", release), 0o4755
            ),
        ),
        package(
            "nvidia-persistenced",
            "daemon to maintain persistent software state in the NVIDIA driver",
            File(
                "/usr/bin/nvidia-persistenced",
                source.command("commands.persistenced", "main", release),
                0o755,
            ),
            File("/usr/lib/systemd/system/nvidia-persistenced.service", PERSISTENCED_UNIT.encode()),
            needs="libnvidia-cfg1, passwd (>= 1), init-system-helpers (>= 1.52)",
            scripts={
                "postinst": PERSISTENCED_POSTINST,
                "prerm": PERSISTENCED_PRERM,
                "postrm": PERSISTENCED_POSTRM,
            },
        ),
        package(
            "nvidia-driver-cuda",
            "NVIDIA driver CUDA integration components",
            File("/usr/bin/nvidia-smi", source.program("nvidia-smi"), 0o755),
            needs="libcuda1, libcudadebugger1, libnvidia-cfg1, libnvidia-ml1, libnvidia-ptxjitcompiler1, "
            "nvidia-modprobe, nvidia-persistenced",
            Recommends="nvidia-kernel-open-dkms | nvidia-kernel-dkms",
            Conflicts="nvidia-smi",
        ),
        package(
            "firmware-nvidia-gsp",
            "NVIDIA GSP firmware",
            *(
                File(f"/usr/lib/firmware/nvidia/{release}/gsp_{chip}.bin", b"simulated\n")
                for chip in ("ga10x", "tu10x")
            ),
        ),
        package(
            "nvidia-kernel-support",
            "NVIDIA binary kernel module support files",
            File(
                "/usr/lib/udev/rules.d/60-nvidia.rules",
                b'ACTION=="add", SUBSYSTEM=="module", KERNEL=="nvidia", RUN+="/usr/bin/nvidia-modprobe"\n',
            ),
            needs="nvidia-modprobe",
        ),
        _kernel(
            (release, revision, module),
            "nvidia-kernel-open-dkms",
            "NVIDIA binary kernel module DKMS source open flavor",
            OPEN,
            "nvidia-kernel-dkms",
        ),
        _kernel(
            (release, revision, module),
            "nvidia-kernel-dkms",
            "NVIDIA binary kernel module DKMS source",
            PROPRIETARY,
            "nvidia-kernel-open-dkms",
        ),
        package(
            "nvidia-driver",
            "NVIDIA metapackage",
            needs="nvidia-kernel-support",
            Recommends="nvidia-persistenced",
        ),
        package(
            "nvidia-open",
            "NVIDIA Driver meta-package, Open GPU kernel modules, latest version",
            needs="nvidia-driver, nvidia-driver-cuda, nvidia-kernel-open-dkms",
        ),
        package(
            "cuda-drivers",
            "CUDA Driver meta-package, branch-specific",
            needs="nvidia-driver, nvidia-driver-cuda, nvidia-kernel-dkms",
        ),
        package(
            f"nvidia-open-{branch}",
            f"NVIDIA Driver meta-package, Open GPU kernel modules, branch {branch}",
            needs="nvidia-open",
        ),
        package(f"cuda-drivers-{branch}", f"CUDA Driver meta-package, branch {branch}", needs="cuda-drivers"),
    ]


def runfile(release: str) -> bytes:
    """The .run installer of a release: an archive that runs itself, on a simulated host."""
    contents = {
        "__main__.py": source.command("commands.runfile", "main", release),
        "root/usr/bin/nvidia-smi": source.program("nvidia-smi"),
        f"root{LIBRARIES}/libnvidia-ml.so.{release}": nvml(release),
        f"root{LIBRARIES}/libcuda.so.{release}": source.ELF_HEADER,
        **{
            f"root/usr/lib/firmware/nvidia/{release}/gsp_{chip}.bin": b"simulated\n"
            for chip in ("ga10x", "tu10x")
        },
    }
    return source.archive(contents, prefix=b"#!/usr/bin/python3 -ES\n")


def nvml(release: str) -> bytes:
    """libnvidia-ml.so of a release: the Python modules that nvidia-smi runs, and their release."""
    files = source.modules([".", "smi"])
    files["labgpu/version.py"] = f"VERSION = {release!r}\n".encode()
    return source.archive(files, prefix=source.ELF_HEADER)


def pinning(what: str, version: str) -> Package:
    """A package that pins the driver to a branch ("580") or to a release ("580.105.08")."""
    kind = "branch" if what.isdigit() else "version"
    wanted = f"{what}.*" if kind == "branch" else f"{what}-*"
    text = f"Package: {' '.join(PINNED)}\nPin: version {wanted}\nPin-Priority: 1000\n"
    path = f"/etc/apt/preferences.d/nvidia-driver-pinning-{what}"
    return Package(
        f"nvidia-driver-pinning-{what}",
        version,
        f"APT driver pinning file for driver {kind} {what}",
        (File(path, text.encode()),),
        {
            "Provides": "nvidia-driver-pinning",
            "Conflicts": "nvidia-driver-pinning",
            "Replaces": "nvidia-driver-pinning",
        },
        conffiles=(path,),
    )


def _library(name: str, release: str, content: bytes) -> tuple[File, File]:
    return (
        File(f"{LIBRARIES}/{name}.{release}", content),
        File(f"{LIBRARIES}/{name}.1", link=f"{name}.{release}"),
    )


def _kernel(origin: tuple[str, str, str], name: str, description: str, license_: str, rival: str) -> Package:
    import json

    release, revision, module = origin
    code = f"/usr/src/{module}-{release}"
    built = "".join(
        f'BUILT_MODULE_NAME[{number}]="{built}"\nDEST_MODULE_LOCATION[{number}]="/updates/dkms"\n'
        for number, built in enumerate(KERNEL_MODULES)
    )
    configuration = f'PACKAGE_NAME="{module}"\nPACKAGE_VERSION="{release}"\n{built}AUTOINSTALL="yes"\n'
    modules = {"license": license_, "modules": KERNEL_MODULES}
    depends = ", ".join(
        [
            "dkms (>= 3.3)",
            *(
                f"{need} (= {release}-{revision})"
                for need in ("firmware-nvidia-gsp", "nvidia-kernel-support", "nvidia-modprobe")
            ),
        ]
    )
    return Package(
        name,
        f"{release}-{revision}",
        description,
        (
            File(f"{code}/dkms.conf", configuration.encode()),
            File(f"{code}/lab-module.json", (json.dumps(modules, sort_keys=True) + "\n").encode()),
        ),
        {"Depends": depends, "Provides": f"nvidia-kernel-{release}", "Conflicts": rival, "Replaces": rival},
        {
            name: text.format(module=module, version=release)
            for name, text in (("postinst", DKMS_POSTINST), ("prerm", DKMS_PRERM))
        },
        section="non-free/kernel",
    )
