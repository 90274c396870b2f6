"""The driver of the distribution itself: Debian's names and version, with the glue that the vendor's has not.

Names: https://packages.debian.org/source/trixie/nvidia-graphics-drivers. They lie in a repository of files on
the host, since the mirror's own would build for a kernel that a simulated host does not have.
"""

from __future__ import annotations

from dataclasses import replace

from boxwright.lab.gpu import source
from boxwright.lab.gpu.deb import File, Package
from boxwright.lab.gpu.packages import driver

RELEASE, REVISION = "550.163.01", "2"
#: DKMS's name of the modules, which Debian gives them beside the tesla ones.
MODULE = "nvidia-current"
#: What the vendor calls the package of the open modules.
VENDORS_OPEN = "nvidia-kernel-open-dkms"
#: Packages that both repositories have under one name.
SHARED = (
    "libnvidia-ml1",
    "libcuda1",
    "libnvidia-ptxjitcompiler1",
    "libnvidia-cfg1",
    "nvidia-modprobe",
    "nvidia-persistenced",
    "firmware-nvidia-gsp",
    "nvidia-kernel-support",
    "nvidia-kernel-dkms",
)


def packages(release: str = RELEASE, revision: str = REVISION) -> list[Package]:
    """Every package of it; release, revision: of the driver, which backports have newer."""
    version = f"{release}-{revision}"
    shared = [one for one in driver.release_packages(release, revision, MODULE) if one.name in SHARED]
    opened = driver.release_packages(release, revision, f"{MODULE}-open")

    def package(name: str, description: str, needs: tuple[str, ...], *files: File) -> Package:
        depends = ", ".join(f"{need} (= {version})" for need in needs)
        return Package(name, version, description, files, {"Depends": depends} if needs else {})

    return [
        *shared,
        *(replace(one, name="nvidia-open-kernel-dkms") for one in opened if one.name == VENDORS_OPEN),
        package("nvidia-alternative", "allows the selection of NVIDIA as GLX provider", ()),
        package(
            "nvidia-smi",
            "NVIDIA System Management Interface",
            ("libnvidia-ml1", "nvidia-alternative"),
            File("/usr/bin/nvidia-smi", source.program("nvidia-smi"), 0o755),
        ),
        package(
            "nvidia-driver",
            "NVIDIA metapackage",
            ("nvidia-kernel-dkms", "nvidia-smi", "libcuda1", "nvidia-persistenced"),
        ),
    ]
