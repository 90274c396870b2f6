"""A lab host without a container: the payload's code over a directory, with packages unpacked into it."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from boxwright.lab import rigs
from boxwright.lab.gpu import deb, hardware, source
from boxwright.lab.gpu.deb import Package
from boxwright.lab.gpu.packages import driver, toolkit

KERNEL = "6.12.57+deb13-amd64"
PAYLOAD = Path(source.__file__).with_name("payload")


class Host:
    """One host below `root`. Programs run as on a host, with every path moved there."""

    kernel = KERNEL

    def __init__(self, root: Path, rig: str) -> None:
        self.root = root
        for file in hardware.files(rigs.load(rig, "test-host"), kernel=KERNEL):
            path = root / file.path.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.content)

    def install(self, release: str = "580.105.08", *names: str, headers: bool = True) -> None:
        """Unpack driver packages and build the module, as their scripts do."""
        if headers:
            (self.root / f"lib/modules/{KERNEL}/build").mkdir(parents=True, exist_ok=True)
        wanted = names or (
            "libnvidia-ml1",
            "libcuda1",
            "nvidia-driver-cuda",
            "firmware-nvidia-gsp",
            "nvidia-kernel-open-dkms",
        )
        for package in driver.release_packages(release):
            if package.name in wanted:
                unpack(package, self.root)
        self.run("commands.dkms", "package", "nvidia", release)

    def install_toolkit(self, release: str = "1.18.1") -> None:
        """Unpack the container toolkit."""
        for package in toolkit.release_packages(release):
            unpack(package, self.root)

    def run(self, module: str, function: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a function of the payload as a program."""
        code = f"import sys; from labgpu.{module} import {function}; sys.exit({function}(sys.argv[1:]))"
        return self._python("-c", code, *arguments, path=str(PAYLOAD))

    def smi(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the installed nvidia-smi."""
        return self._python(str(self.root / "usr/bin/nvidia-smi"), *arguments)

    def runfile(self, release: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the driver's .run installer."""
        path = self.root / f"NVIDIA-Linux-x86_64-{release}.run"
        path.write_bytes(driver.runfile(release))
        return self._python(str(path), *arguments, path=str(PAYLOAD))

    def uninstall_runfile(self) -> subprocess.CompletedProcess[str]:
        """Run what the .run installer left to take itself off."""
        return self._python(str(self.root / "usr/bin/nvidia-uninstall"), "--silent", path=str(PAYLOAD))

    def lab_gpu(self, *arguments: str) -> None:
        """Run lab-gpu; it must succeed."""
        done = self.run("commands.labgpu", "main", *arguments)
        assert done.returncode == 0, done.stderr

    def modprobe(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run modprobe."""
        return self.run("commands.modprobe", "modprobe", *arguments)

    def reboot(self) -> None:
        """Lose what memory held, then start again."""
        for directory in ("run", "dev", "sys", "proc"):
            subprocess.run(["rm", "-rf", str(self.root / directory)], check=True)
        self.lab_gpu("boot")

    def _python(self, *arguments: str, path: str = "") -> subprocess.CompletedProcess[str]:
        environment = {
            "LAB_GPU_ROOT": str(self.root),
            "LAB_GPU_KERNEL": KERNEL,
            "PATH": os.environ["PATH"],
            "PYTHONPATH": path,
        }
        return subprocess.run(
            [sys.executable, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


def unpack(package: Package, root: Path) -> None:
    """Unpack a package's files below a directory."""
    with tarfile.open(fileobj=io.BytesIO(member(deb.build(package), "data.tar.gz"))) as tar:
        for entry in tar.getmembers():
            if entry.issym() and (root / entry.name).is_symlink():
                (root / entry.name).unlink()
        tar.extractall(root, filter="fully_trusted")


def member(archive: bytes, name: str) -> bytes:
    """A member of an ar archive."""
    offset = len(b"!<arch>\n")
    while offset < len(archive):
        header = archive[offset : offset + 60]
        size = int(header[48:58])
        offset += 60
        if header[:16].decode().strip() == name:
            return archive[offset : offset + size]
        offset += size + size % 2
    raise KeyError(name)


@pytest.fixture
def ar_member() -> Callable[[bytes, str], bytes]:
    """Take a member out of an ar archive."""
    return member


@pytest.fixture
def make_host(tmp_path: Path) -> Callable[[str], Host]:
    """Make a host with the cards of a rig and no driver; it has booted."""

    def make(rig: str = "rtx3090x2") -> Host:
        host = Host(tmp_path / "host", rig)
        host.reboot()
        return host

    return make


@pytest.fixture
def make_driven(make_host: Callable[[str], Host]) -> Callable[..., Host]:
    """Make a host whose driver is installed and loaded."""

    def make(rig: str = "rtx3090x2", release: str = "580.105.08") -> Host:
        host = make_host(rig)
        (host.root / "etc/modprobe.d").mkdir(parents=True)
        (host.root / "etc/modprobe.d/nouveau.conf").write_text("blacklist nouveau\n")
        host.install(release)
        host.reboot()
        return host

    return make
