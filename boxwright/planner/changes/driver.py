"""Driver, its packages and the CUDA toolkit: what the role nvidia_driver would change."""

from __future__ import annotations

import re
from collections.abc import Iterator

from boxwright.facts.kept import LOADED_AT_BOOT, NOUVEAU_OFF
from boxwright.facts.parsers import nvidia_smi
from boxwright.planner.case import Host
from boxwright.planner.changes import packages
from boxwright.planner.changes.change import OFF, ON, Change

ROLE = "nvidia_driver"
GROUP, SOURCE = "nvidia-driver", "cuda"
SOURCE_URL = "https://developer.download.nvidia.com/compute/cuda/repos"
#: Distributions that have the driver's modules signed, for each of their kernels.
SIGN_MODULES = ("ubuntu",)
_TOOLKIT = re.compile(r"cuda-toolkit-(\d+)-(\d+)")


def changes(host: Host) -> Iterator[Change]:
    """In the order in which they are made."""
    declared, driver = host.box.driver, host.facts.driver
    if not declared.manage:
        return
    version = tuple(_version(host))
    # A driver that is not there yet comes with its source and all that belongs to it.
    new = any(change.subject == "driver" and change.was is None for change in version)
    if not new:
        url = str(host.box.settings.get("nvidia_driver_repository_url") or SOURCE_URL)
        if declared.source == "vendor" or declared.cuda_toolkit:
            yield from packages.source(host.facts, ROLE, SOURCE, url, "package source of the driver")
        elif SOURCE in host.facts.kept.sources:
            yield Change(
                ROLE, "package source of the vendor", " ".join(host.facts.kept.sources[SOURCE]), None
            )
        if host.facts.os.manager == "apt":
            yield from _pin(host)
    yield from version
    if driver.flavor and driver.flavor != declared.flavor:
        yield Change(ROLE, "kernel modules", driver.flavor, declared.flavor, reboot=True)
    if not new:
        yield from packages.lost(host.facts, ROLE, GROUP)
        yield from packages.holds(host.facts, ROLE, GROUP, "the driver's packages")
        yield from _at_boot(host)
        yield from _next_kernel(host)
    yield from _toolkit(host)


def replaces(host: Host) -> bool:
    """Whether another driver, or other kernel modules, would come onto the host."""
    return any(change.subject in ("driver", "kernel modules") for change in changes(host))


def builds(host: Host) -> bool:
    """Whether modules would be built on the host, for the kernel that runs or one that waits."""
    return replaces(host) or host.facts.driver.next_kernel is not None


def coming(host: Host) -> str | None:
    """The driver that a run would bring onto the host, None where what is there stays."""
    if not host.box.driver.manage:
        return None
    return next((change.to for change in _version(host) if change.subject == "driver"), None)


def _version(host: Host) -> Iterator[Change]:
    declared, driver = host.box.driver, host.facts.driver
    wanted = declared.upstream or declared.branch
    target = f"version {wanted}" if declared.version else f"branch {wanted}"
    serves = any(release.current for release in host.facts.releases)
    found = driver.installed_version or driver.loaded_version
    parts = nvidia_smi.version(wanted)
    if driver.state == "absent" or found is None:
        yield Change(ROLE, "driver", None, target, reboot=driver.nouveau)
    elif nvidia_smi.version(found)[: len(parts)] != parts:
        loaded = driver.loaded_version is not None
        yield Change(ROLE, "driver", found, target, reboot=loaded, interrupts=serves)
    elif driver.state == "mismatch":
        yield Change(ROLE, "loaded driver", driver.loaded_version, driver.installed_version, reboot=True)
    elif driver.state == "installed":
        yield Change(ROLE, "loaded driver", None, driver.installed_version)


def _pin(host: Host) -> Iterator[Change]:
    """apt prefers the declared version: `580.*`, whatever the distribution adds to it."""
    declared, found = host.box.driver, host.facts.kept.pins.get(GROUP)
    wanted = (declared.version or f"{declared.branch}.*").rpartition(":")[2]
    if found is None or not found.startswith(wanted):
        yield Change(ROLE, "version that apt prefers for the driver", found, wanted)


def _at_boot(host: Host) -> Iterator[Change]:
    files, driver = host.facts.kept.files, host.facts.driver
    if driver.nouveau or NOUVEAU_OFF not in files:
        yield Change(ROLE, "nouveau", ON if driver.nouveau else "allowed", OFF, reboot=driver.nouveau)
    if LOADED_AT_BOOT not in files:
        yield Change(ROLE, "loading of the driver at boot", OFF, ON)


def _next_kernel(host: Host) -> Iterator[Change]:
    """Modules for a kernel that waits for the next boot, where they are built on the host."""
    driver = host.facts.driver
    lines = [line for line in driver.dkms.splitlines() if line.startswith("nvidia") and ": installed" in line]
    waiting = driver.next_kernel
    if waiting and lines and not any(f", {waiting}," in line for line in lines):
        yield Change(ROLE, f"modules for the next kernel, {waiting}", None, "built")


def _toolkit(host: Host) -> Iterator[Change]:
    """The declared CUDA toolkit is there; one that we installed and that is declared no more goes."""
    wanted = host.box.driver.cuda_toolkit
    there = {
        f"{found[1]}.{found[2]}"
        for name in packages.there(host.facts)
        if (found := _TOOLKIT.fullmatch(name)) is not None
    }
    group = host.facts.kept.groups.get(GROUP)
    ours = {
        f"{found[1]}.{found[2]}"
        for name in (group.declared if group else ())
        if (found := _TOOLKIT.fullmatch(name)) is not None and name in (group.installed if group else ())
    }
    leaving = sorted((ours & there) - {wanted})
    if wanted and wanted not in there:
        yield Change(ROLE, "CUDA toolkit", leaving[0] if leaving else None, wanted)
        leaving = leaving[1:]
    for version in leaving:
        yield Change(ROLE, "CUDA toolkit", version, None)
