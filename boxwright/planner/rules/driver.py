"""Rules about the host's system and its NVIDIA driver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from boxwright.catalog import systems
from boxwright.planner.case import Case, Host
from boxwright.planner.changes import driver as driver_changes
from boxwright.planner.rules.registry import Note, host_advice, host_gate, note

#: The lowest branch that the roles install: the first that supports CUDA 12.8.
LOWEST_BRANCH = 570
#: How EPEL, which has dkms, comes to a host; RHEL has no package of its release in its own repositories.
EPEL = {
    "rhel": "dnf install https://dl.fedoraproject.org/pub/epel/epel-release-latest-9.noarch.rpm",
    "": "dnf install epel-release",
}


@host_gate("driver-branch-too-old", source="https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/")
def branch_too_old(host: Host, cases: Sequence[Case]) -> Note | None:
    """CUDA 12.8, the least that is served, needs a driver of branch 570 or newer."""
    branch = host.driver_branch
    if branch is None or branch >= LOWEST_BRANCH:
        return None
    return note(
        f"driver branch {branch} supports less than CUDA 12.8",
        'nvidia_driver_branch: "580"',
        at="nvidia_driver_branch",
    )


@host_gate("card-needs-newer-driver", source="boxwright/catalog/data/cards.yml")
def card_needs_newer(host: Host, cases: Sequence[Case]) -> Note | None:
    """A card works with drivers from the branch on that came with it."""
    branch = host.driver_branch
    card = next(
        (card for card in host.cards if card.kind and branch and card.kind.driver_branch > branch), None
    )
    if card is None or card.kind is None:
        return None
    return note(
        f"{card.title} needs driver {card.kind.driver_branch} or newer; {branch} is declared",
        f'nvidia_driver_branch: "{max(card.kind.driver_branch, 580)}"',
        at="nvidia_driver_branch",
    )


@host_gate("driver-does-not-work", source="https://github.com/oddmario/NVIDIA-Ubuntu-Driver-Guide/issues/4")
def driver_does_not_work(host: Host, cases: Sequence[Case]) -> Note | None:
    """Where the driver is not Boxwright's to manage, it must work before anything is built on it.

    After an upgrade of its packages the loaded module is the old one until a reboot: running containers go
    on, the next one fails.
    """
    driver, facts = host.facts.driver, host.facts
    if host.box.driver.manage or not facts.recorded or driver.state == "loaded" or not cases:
        return None
    words = {
        "absent": "no NVIDIA driver is installed",
        "installed": "the NVIDIA driver is installed and its module is not loaded",
        "mismatch": f"libraries {driver.library_version or driver.installed_version} and the loaded module "
        f"{driver.loaded_version} are of two versions: a reboot is due",
        "no-devices": "the driver is loaded and no card answers it",
        "nouveau": "nouveau holds the cards",
    }
    return note(
        f"{words.get(driver.state, driver.problem or 'the driver does not answer')}, and "
        f"nvidia_driver_manage "
        "is false",
        "reboot" if driver.state in ("mismatch", "installed") else "nvidia_driver_manage: true",
        at="nvidia_driver_manage",
    )


@host_gate("card-does-not-answer", source="https://github.com/NVIDIA/open-gpu-kernel-modules/issues/862")
def card_does_not_answer(host: Host, cases: Sequence[Case]) -> Iterator[Note]:
    """A card on the bus that the loaded driver does not list has fallen off, or was never initialised.

    One of several: power, a riser, heat (Xid 79). All of them, on new boards: Resizable BAR and Above 4G
    Decoding. Or the driver does not know the card: an older branch, or proprietary modules on Blackwell;
    where another driver is declared, it comes first, and the cards are asked again after it.
    """
    driver = host.facts.driver
    used = {index for case in cases for index in case.indices}
    if driver.state == "no-devices":
        yield note(
            "the driver is loaded and no card answers it",
            "reboot the host",
            "enable Resizable BAR and Above 4G Decoding in the firmware",
            at="nvidia_driver_branch",
            soft=driver_changes.replaces(host),
        )
    for card in host.cards:
        if card.card.lost and card.index in used:
            yield note(
                f"the card at {card.card.pci_bus} is on the bus and does not answer: fallen off, by power or "
                "heat",
                "reboot the host",
                "look at its cables and at the kernel log (Xid 79)",
                at="box_gpus",
            )


@host_gate("no-card", source="https://pci-ids.ucw.cz/read/PC/10de")
def no_card(host: Host, cases: Sequence[Case]) -> Note | None:
    """A deployment needs an NVIDIA card; the PCI bus shows it before any driver is installed."""
    if host.cards or not cases:
        return None
    if not host.facts.recorded:
        return note(
            "no cards are declared, so nothing can be planned without the host",
            "box_gpus: {model: rtx5090, count: 1}",
            at="box_gpus",
        )
    return note(
        "the host has no NVIDIA card on its PCI bus",
        "see that the card is seated and enabled in the firmware",
        "pass it through to this virtual machine",
        at="box_gpus",
    )


@host_gate(
    "driver-of-no-package", source="https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/"
)
def driver_of_no_package(host: Host, cases: Sequence[Case]) -> Note | None:
    """A driver of NVIDIA's .run installer, or what is left of one, does not mix with packages.

    Its libraries lie beside or over those of the packages; the next program finds one or the other, and
    fails with "Driver/library version mismatch". Its own uninstaller takes all of it away; it comes first.
    """
    driver = host.facts.driver
    if not host.box.driver.manage or not driver.unowned:
        return None
    programs = [path for path in driver.unowned if path.endswith("/nvidia-uninstall")]
    libraries = [path for path in driver.unowned if ".so." in path]
    versions = sorted({path.split(".so.")[1] for path in libraries})
    what = f"driver {' and '.join(versions)}" if versions else "a driver"
    keep = "nvidia_driver_manage: false (keeps that driver)"
    if programs:
        return note(
            f"{what} of NVIDIA's .run installer is on the host ({programs[0]}), and packages would mix with "
            f"it",
            f"on the host: sudo {programs[0]} --silent, then run this again",
            keep,
            at="nvidia_driver_manage",
        )
    left = driver.unowned
    return note(
        f"files of {what} are on the host that belong to no package, as an installer of another kind leaves "
        f"them: {', '.join(left)}",
        f"on the host: sudo rm {' '.join(left)} && sudo ldconfig, then run this again",
        keep,
        at="nvidia_driver_manage",
    )


@host_gate("system-not-supported", source="https://docs.nvidia.com/cuda/cuda-installation-guide-linux/")
def system_not_supported(host: Host, cases: Sequence[Case]) -> Note | None:
    """The roles install packages of the distributions' releases that NVIDIA's repository serves."""
    system = host.facts.os
    if not host.facts.recorded:
        return None
    known = systems.load()
    release = system.major if system.manager == "dnf" else system.version_id
    releases = known[system.id].releases if system.id in known else ()
    if system.architecture == "x86_64" and release in releases:
        return None
    served = "; ".join(f"{one.name} {', '.join(one.releases)}" for one in known.values())
    return note(
        f"the host runs {system.name or system.id or 'an unknown system'} on {system.architecture}; the "
        f"roles "
        f"are made for {served} on x86_64",
        "install one of these",
    )


@host_gate(
    "no-driver-of-the-distribution",
    source="https://docs.rockylinux.org/desktop/display/installing_nvidia_gpu_drivers/",
)
def no_driver_of_the_distribution(host: Host, cases: Sequence[Case]) -> Note | None:
    """Red Hat's family has no NVIDIA driver in its own repositories.

    RPM Fusion's, ELRepo's and AlmaLinux's are further sources, of other names and builds.
    """
    declared = host.box.driver
    if not declared.manage or declared.source != "distribution" or host.facts.os.manager != "dnf":
        return None
    return note(
        f"{host.facts.os.name or host.facts.os.id} has no NVIDIA driver of its own, and the distribution's "
        "is declared",
        "nvidia_driver_source: vendor",
        "nvidia_driver_manage: false (keeps the driver that is there)",
        at="nvidia_driver_source",
    )


@host_advice("dkms-needs-epel", source="https://docs.nvidia.com/cuda/cuda-installation-guide-linux/")
def dkms_needs_epel(host: Host, cases: Sequence[Case]) -> Note | None:
    """NVIDIA's kernel modules for Red Hat's family need dkms, which only EPEL has.

    A repository of one's own may have it by another name: dnf tries the whole installation before anything
    changes, and says "nothing provides dkms" where none has it.
    """
    system, driver = host.facts.os, host.facts.driver
    if system.manager != "dnf" or not host.box.driver.manage or "dkms" in driver.packages:
        return None
    if not host.facts.recorded or any("epel" in name.lower() for name in host.facts.repositories):
        return None
    return note(
        "the driver's kernel modules need dkms, and EPEL, which has it, is not among the host's repositories",
        f"on the host: sudo {EPEL.get(system.id, EPEL[''])}",
        "a repository of your own with dkms, by whatever name: the run then finds it there",
        at="nvidia_driver_manage",
    )


@host_advice("reboot-is-due", source="https://github.com/pando85/homelab/pull/4110")
def reboot_is_due(host: Host, cases: Sequence[Case]) -> Note | None:
    """Libraries and loaded module of two versions work on until a container is made anew."""
    driver = host.facts.driver
    if driver.state != "mismatch" or not host.box.driver.manage:
        return None
    return note(
        f"libraries {driver.library_version or driver.installed_version} and the loaded module "
        f"{driver.loaded_version} are of two versions",
        "nvidia_driver_reboot: true (lets the run reboot)",
        "reboot by hand",
        at="nvidia_driver_reboot",
    )
