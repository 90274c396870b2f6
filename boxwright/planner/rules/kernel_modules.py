"""Rules about the driver's kernel modules: whether they drive the cards, and Secure Boot lets them in."""

from __future__ import annotations

from collections.abc import Sequence

from boxwright.catalog import kernel_modules
from boxwright.catalog.kernel_modules import FLAVORS, Generation
from boxwright.facts.model import Driver, OperatingSystem
from boxwright.planner.cards import PlannedCard
from boxwright.planner.case import Case, Host
from boxwright.planner.changes import driver as driver_changes
from boxwright.planner.rules.driver import LOWEST_BRANCH
from boxwright.planner.rules.registry import Note, host_gate, note

#: What the key needs that signs modules, and how it is made, by distribution ("" for the others).
TOOLS = {"apt": "apt-get install dkms mokutil", "dnf": "dnf install dkms mokutil"}
MAKE_KEY = {"ubuntu": "update-secureboot-policy --new-key", "": "dkms generate_mok"}
#: What is the matter with the key, by its state.
KEY = {
    "not-enrolled": "the key that DKMS signs with ({path}) is not enrolled",
    "pending": "the key that DKMS signs with ({path}) waits for its confirmation at the console",
    "blocked": "the key that DKMS signs with ({path}) is on the firmware's list of blocked ones",
    "absent": "DKMS has no key to sign with yet ({path})",
    "unsigned": "DKMS is told not to sign modules (try_sign_modules in /etc/dkms)",
    "": "mokutil does not say whether the key that DKMS signs with ({path}) is enrolled",
}


def _flavor(host: Host) -> str:
    declared = str(host.box.settings.get("nvidia_driver_flavor") or "open")
    return declared if declared in FLAVORS else "open"


def _generations(host: Host) -> list[tuple[PlannedCard, Generation]]:
    found = ((card, kernel_modules.of_card(card.card.pci_id)) for card in host.cards)
    return [(card, generation) for card, generation in found if generation is not None]


@host_gate(
    "proprietary-modules-on-blackwell", source="https://github.com/NVIDIA/open-gpu-kernel-modules/issues/872"
)
def proprietary_on_blackwell(host: Host, cases: Sequence[Case]) -> Note | None:
    """Blackwell cards, and Grace Hopper, work only with the open kernel modules.

    With the proprietary ones everything installs, and nvidia-smi says "No devices were found".
    """
    if _flavor(host) != "proprietary" or not host.box.driver.manage:
        return None
    cards = _generations(host)
    card = next((card for card, generation in cards if generation.open_only), None)
    if card is None:
        return None
    older = [one for one, generation in cards if "open" not in generation.last]
    return note(
        f"{card.title} works only with the open kernel modules; proprietary ones are declared",
        f"take {older[0].title}, which the open modules do not drive, out of the host; then "
        "nvidia_driver_flavor: open"
        if older
        else "nvidia_driver_flavor: open",
        at="nvidia_driver_flavor",
    )


@host_gate("modules-do-not-drive-the-card", source="boxwright/catalog/data/kernel_modules.yml")
def modules_do_not_drive(host: Host, cases: Sequence[Case]) -> Note | None:
    """Open kernel modules drive Turing and newer; older cards need proprietary ones, up to branch 580.

    Branches after 580 dropped Maxwell, Pascal and Volta, and those from 620 on have no proprietary modules at
    all. A package that does not know the card installs, builds and loads; then no device is found.
    """
    branch, flavor, cards = host.driver_branch, _flavor(host), _generations(host)
    if branch is None or not host.box.driver.manage:
        return None
    left_out = [(card, one) for card, one in cards if not one.drives(flavor, branch)]
    if not left_out or (flavor == "proprietary" and any(one.open_only for _, one in cards)):
        return None
    card, generation = left_out[0]
    generations = [one for _, one in cards]
    fitting = kernel_modules.flavors(generations, branch)
    last = kernel_modules.last_branch(generations)
    if fitting:
        ways = [f"nvidia_driver_flavor: {fitting[0]}"]
    elif last and last[1] >= LOWEST_BRANCH:
        ways = [f'nvidia_driver_branch: "{last[1]}" with nvidia_driver_flavor: {last[0]}']
    else:
        ways = [
            f"take {card.title} out of the host: no kernel modules that the roles install drive all cards"
        ]
    return note(
        f"the {flavor} kernel modules of branch {branch} do not drive {card.title} ({generation.name})",
        *ways,
        at="nvidia_driver_flavor" if fitting else "nvidia_driver_branch",
    )


@host_gate("secure-boot", source="https://github.com/NVIDIA/ansible-role-nvidia-driver/issues/78")
def secure_boot(host: Host, cases: Sequence[Case]) -> Note | None:
    """With Secure Boot the kernel loads only modules that are signed with a key that the firmware knows.

    Modules built on the host are signed by DKMS, with a key of the host's own: it has to be enrolled, which
    takes a person at the console, and mokutil is asked whether it is. Without that the driver would be gone
    after the next reboot, and nouveau with it. Ubuntu's own modules (linux-modules-nvidia-...) are signed by
    Ubuntu, whose key the firmware knows. One that was built here, is loaded and stays as it is needs no key.
    """
    driver, system = host.facts.driver, host.facts.os
    signs = system.id in driver_changes.SIGN_MODULES
    if not driver.secure_boot or not host.box.driver.manage or driver.signing_key_state == "enrolled":
        return None
    if signs and host.box.driver.source == "distribution":
        return None
    works = driver.state == "loaded"
    if works and driver.built_here(system.kernel) and not driver_changes.builds(host):
        return None
    what = KEY.get(driver.signing_key_state or "", KEY[""])
    return note(
        "Secure Boot is on and refuses kernel modules that are built on the host: "
        + what.format(path=driver.signing_key or "/var/lib/dkms/mok.pub"),
        *_signed(system, host.box.driver.source),
        _enrol(driver, system),
        "switch Secure Boot off in the firmware",
        *(
            ("nvidia_driver_manage: false (keeps the driver that is there, which was not built on the host)",)
            if works and not driver.built_here(system.kernel)
            else ()
        ),
        at="nvidia_driver_source",
    )


def _signed(system: OperatingSystem, source: str) -> tuple[str, ...]:
    """Ways to modules that the distribution has signed."""
    if system.id in driver_changes.SIGN_MODULES:
        return ("nvidia_driver_source: distribution (its modules are signed)",)
    if system.id == "almalinux":
        # https://wiki.almalinux.org/documentation/nvidia.html
        return (
            "nvidia_driver_manage: false, with the modules that AlmaLinux has signed (dnf install "
            "almalinux-release-nvidia-driver, then nvidia-open-kmod nvidia-driver)",
        )
    return ()


def _enrol(driver: Driver, system: OperatingSystem) -> str:
    """What a person does on the host, up to the console."""
    confirm = "reboot and choose Enroll MOK at the console"
    state, path = driver.signing_key_state, driver.signing_key or "/var/lib/dkms/mok.pub"
    if state == "pending":
        return confirm
    if state == "unsigned":
        return "take try_sign_modules out of /etc/dkms/framework.conf(.d), then run this again"
    steps = []
    if state not in ("not-enrolled", "blocked"):
        steps.append(f"sudo {TOOLS.get(system.manager, TOOLS['apt'])}")
    if state == "blocked":
        steps.append(f"sudo rm {path}")
    if state in ("absent", "blocked"):
        steps.append(f"sudo {MAKE_KEY.get(system.id, MAKE_KEY[''])}")
    return "; ".join([*steps, f"sudo mokutil --import {path}", confirm])
