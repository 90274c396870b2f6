"""The CUDA toolkit (its compiler tells its version), and the package that sets the repository up."""

from __future__ import annotations

import json

from boxwright.lab.gpu.deb import File, Package

#: CUDA release: (version of the toolkit's metapackage, version of nvcc, build string).
TOOLKITS = {
    "12.8": ("12.8.1-1", "12.8.93-1", "cuda_12.8.r12.8/compiler.35583870_0"),
    "13.0": ("13.0.2-1", "13.0.88-1", "cuda_13.0.r13.0/compiler.36424714_0"),
}
NVCC = """#!/bin/sh
# The compiler of a simulated toolkit tells its version and compiles nothing.
case "$*" in
--version|-V)
    echo "nvcc: NVIDIA (R) Cuda compiler driver"
    echo "Copyright (c) 2005-2025 NVIDIA Corporation"
    echo "Built on Fri_Feb_21_20:23:50_PST_2025"
    echo "Cuda compilation tools, release {release}, V{version}"
    echo "Build {build}" ;;
*)
    echo "nvcc fatal   : this is the simulated compiler of a lab host" >&2
    exit 1 ;;
esac
"""
ALTERNATIVES = """#!/bin/sh
set -e
if [ "$1" = configure ]; then
    update-alternatives --install /usr/local/cuda cuda /usr/local/cuda-{release} {priority}
    update-alternatives --install /usr/local/cuda-{major} cuda-{major} /usr/local/cuda-{release} {priority}
fi
"""
NO_ALTERNATIVES = """#!/bin/sh
set -e
if [ "$1" = remove ]; then
    update-alternatives --remove cuda /usr/local/cuda-{release}
    update-alternatives --remove cuda-{major} /usr/local/cuda-{release}
fi
"""


def packages() -> list[Package]:
    """Every CUDA release's packages."""
    found = []
    for release, (version, compiler, build) in TOOLKITS.items():
        dashed, (major, minor) = release.replace(".", "-"), release.split(".")
        words = {
            "release": release,
            "major": major,
            "priority": f"{major}{minor}",
            "build": build,
            "version": compiler.removesuffix("-1"),
        }
        found += [
            Package(
                f"cuda-nvcc-{dashed}",
                compiler,
                "CUDA nvcc",
                (File(f"/usr/local/cuda-{release}/bin/nvcc", NVCC.format(**words).encode(), 0o755),),
                {"Depends": f"cuda-toolkit-{dashed}-config-common (>= {release})"},
            ),
            Package(
                f"cuda-toolkit-{dashed}-config-common",
                compiler,
                f"Common config package for CUDA Toolkit {release}.",
                (
                    File(
                        f"/usr/local/cuda-{release}/version.json",
                        (json.dumps({"cuda": {"version": version.removesuffix("-1")}}) + "\n").encode(),
                    ),
                ),
                scripts={"postinst": ALTERNATIVES.format(**words), "prerm": NO_ALTERNATIVES.format(**words)},
                architecture="all",
            ),
            Package(
                f"cuda-toolkit-{dashed}",
                version,
                f"CUDA Toolkit {release} meta-package",
                control={"Depends": f"cuda-nvcc-{dashed} (>= {compiler})"},
            ),
        ]
    return found


def keyring(url: str, distribution: str, key: bytes) -> Package:
    """cuda-keyring: the key and the source of a repository at `url`, and its pin."""
    listing = f"/etc/apt/sources.list.d/cuda-{distribution}-x86_64.list"
    pin = "/etc/apt/preferences.d/cuda-repository-pin-600"
    return Package(
        "cuda-keyring",
        "1.1-1",
        "GPG keyring for the CUDA repository",
        (
            File("/usr/share/keyrings/cuda-archive-keyring.gpg", key),
            File(listing, f"deb [signed-by=/usr/share/keyrings/cuda-archive-keyring.gpg] {url} /\n".encode()),
            File(pin, b"Package: *\nPin: release l=NVIDIA CUDA\nPin-Priority: 600\n"),
        ),
        architecture="all",
        section="misc",
        conffiles=(listing, pin),
    )
