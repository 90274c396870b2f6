"""Cards and driver of a raw answer: the bus says which cards there are, nvidia-smi how they are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from boxwright.facts.model import Card, Clocks, Driver, Link, Power
from boxwright.facts.parsers import linux_texts, nvidia_smi
from boxwright.facts.raw import Raw

#: Packages whose version is the driver's, most telling first (names: NVIDIA's repositories, Debian, Ubuntu;
#: RPM Fusion, ELRepo).
DRIVER_PACKAGES = (
    "nvidia-driver-cuda",
    "libnvidia-ml1",
    "libcuda1",
    "nvidia-driver",
    "nvidia-kernel-open-dkms",
    "nvidia-kernel-dkms",
    "nvidia-open",
    "cuda-drivers",
    "xorg-x11-drv-nvidia-cuda",
    "xorg-x11-drv-nvidia",
    "nvidia-x11-drv",
)
#: Ubuntu's names have the branch in them; NVIDIA's for Ubuntu do up to branch 580.
_BRANCHED = re.compile(
    r"(libnvidia-compute|nvidia-utils|nvidia-driver|nvidia-headless)(-\d+)?(-server|-open)*"
)
_KEPT = re.compile(r"nvidia|libcuda|^cuda-|^linux-headers-|^kernel-devel|^dkms$")


def cards(data: Raw) -> tuple[Card, ...]:
    """Every card on the bus, in the order of nvidia-smi where it answers, else in bus order."""
    answer = data.command("cards")
    found = nvidia_smi.query(answer.stdout, answer.stderr, _fields(data))
    rows = {nvidia_smi.bus_address(row.get("pci.bus_id") or ""): row for row in found.rows}
    links = nvidia_smi.topology(data.command("topology").stdout)
    on_bus = {str(one.get("bus", "")).lower(): one for one in data.objects("pci")}
    answering = sorted(rows, key=lambda bus: nvidia_smi.whole(rows[bus].get("index")) or 0)
    silent = sorted(bus for bus in on_bus if bus not in rows)
    listed: list[Card] = [_card(bus, rows[bus], on_bus.get(bus, {}), links) for bus in answering]
    taken = {card.index for card in listed}
    free = (index for index in range(len(rows) + len(on_bus)) if index not in taken)
    # One that is silent while others answer; or the only one, which is named when its handle cannot be had.
    listed += [_silent(next(free), bus, on_bus[bus], lost=bool(rows) or bus in found.lost) for bus in silent]
    return tuple(sorted(listed, key=lambda card: card.index))


def _fields(data: Raw) -> Sequence[str]:
    asked = data.object("commands").get("cards")
    fields = asked.get("fields") if isinstance(asked, Mapping) else None
    return [str(name) for name in fields] if isinstance(fields, list) else nvidia_smi.CARD_FIELDS


def _card(
    bus: str, row: Mapping[str, str | None], device: Mapping[str, Any], links: Mapping[int, Sequence[str]]
) -> Card:
    whole, number = nvidia_smi.whole, nvidia_smi.number
    index = whole(row.get("index")) or 0
    return Card(
        index=index,
        pci_bus=bus,
        pci_id=_pci_id(device),
        uuid=row.get("uuid"),
        name=row.get("name"),
        memory_total_mib=whole(row.get("memory.total")),
        memory_reserved_mib=whole(row.get("memory.reserved")),
        memory_used_mib=whole(row.get("memory.used")),
        compute_capability=row.get("compute_cap"),
        persistence=nvidia_smi.enabled(row.get("persistence_mode")),
        clocks=Clocks(
            whole(row.get("clocks.current.graphics")),
            whole(row.get("clocks.max.graphics")),
            whole(row.get("clocks.current.memory")),
            whole(row.get("clocks.max.memory")),
        ),
        power=Power(
            number(row.get("power.limit")),
            number(row.get("power.default_limit")),
            number(row.get("power.min_limit")),
            number(row.get("power.max_limit")),
        ),
        link=Link(
            whole(row.get("pcie.link.gen.current")),
            whole(row.get("pcie.link.gen.max")),
            whole(row.get("pcie.link.width.current")),
            whole(row.get("pcie.link.width.max")),
        ),
        numa_node=_numa(device),
        topology=tuple(links.get(index, ())),
        kernel_driver=_holder(device),
        mig=nvidia_smi.enabled(row.get("mig.mode.current")),
    )


def _silent(index: int, bus: str, device: Mapping[str, Any], lost: bool) -> Card:
    width, max_width = (
        nvidia_smi.whole(str(device.get(name) or "")) for name in ("current_link_width", "max_link_width")
    )
    return Card(
        index=index,
        pci_bus=bus,
        pci_id=_pci_id(device),
        link=Link(width=width, max_width=max_width),
        numa_node=_numa(device),
        kernel_driver=_holder(device),
        lost=lost,
    )


def _pci_id(device: Mapping[str, Any]) -> str:
    vendor, kind = (str(device.get(name) or "").lower().removeprefix("0x") for name in ("vendor", "device"))
    return f"{vendor}:{kind}" if vendor and kind else ""


def _numa(device: Mapping[str, Any]) -> int | None:
    node = nvidia_smi.whole(str(device.get("numa_node") or ""))
    return node if node is not None and node >= 0 else None


def _holder(device: Mapping[str, Any]) -> str | None:
    return str(device.get("driver") or "") or None


def driver(data: Raw, found_cards: Sequence[Card]) -> Driver:
    """How far the driver has come, with the versions that tell it."""
    packages = installed_packages(data)
    module = linux_texts.kernel_module(data.command("modinfo").stdout)
    loaded, flavor = linux_texts.loaded_driver(data.file("nvidia"))
    loaded = loaded or data.file("module-version").strip() or None
    installed = _installed(packages) or (module.get("version") or None)
    answer = data.command("cards")
    said = nvidia_smi.outcome(answer.rc, answer.stdout, answer.stderr)
    nouveau = bool(data.get("nouveau")) or any(card.kernel_driver == "nouveau" for card in found_cards)
    library = nvidia_smi.library_version(answer.text) or _smi_version(data)
    state = _state(said, installed, loaded, library, nouveau)
    waiting = str(data.get("next_kernel") or "") or None
    waiting = None if waiting == data.object("uname").get("release") else waiting
    key = data.object("signing_key")
    return Driver(
        state=state,
        installed_version=installed,
        loaded_version=loaded,
        library_version=library,
        cuda=nvidia_smi.cuda_version(data.command("smi-version").text),
        flavor=flavor or linux_texts.module_flavor(module.get("license", "")),
        packages={name: version for name, version in packages.items() if _KEPT.search(name)},
        held=tuple(sorted(_held(data) & set(packages))),
        nouveau=nouveau,
        dkms=data.command("dkms").stdout.strip(),
        kernel_headers=bool(data.get("headers")),
        next_kernel=waiting,
        next_headers=bool(data.get("next_headers")) if waiting else None,
        unowned=tuple(path for path in _list(data.get("unowned")) if isinstance(path, str)),
        secure_boot=_secure_boot(data),
        signing_key=str(key.get("certificate") or "") or None,
        signing_key_state=str(key.get("state") or "") or None,
        problem=answer.text[:500]
        if said == "lost" or state in ("failed", "mismatch", "no-devices")
        else None,
    )


def installed_packages(data: Raw) -> dict[str, str]:
    """The packages of driver and containers, name -> version, by whichever manager the host has."""
    found: dict[str, str] = linux_texts.packages(data.command("packages").stdout)
    return {**found, **linux_texts.rpms(data.command("rpms").stdout)}


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def _held(data: Raw) -> set[str]:
    """What dpkg says of each package, and apt-mark of all: on a busy host one of them may give no answer.

    With dnf, those that its versionlock is about.
    """
    told = linux_texts.held(data.command("packages").stdout)
    locked = (name for name in _list(data.get("locked")) if isinstance(name, str))
    return {*told, *linux_texts.names(data.command("holds").stdout), *locked}


def _installed(packages: Mapping[str, str]) -> str | None:
    names = [name for name in DRIVER_PACKAGES if name in packages]
    names += sorted(name for name in packages if _BRANCHED.fullmatch(name))
    versions = (linux_texts.upstream(packages[name]).split("-")[0] for name in names)
    return next((version for version in versions if nvidia_smi.version(version)[:1] > (100,)), None)


def _smi_version(data: Raw) -> str | None:
    found = re.search(r"^NVIDIA-SMI version\s*:\s*([\d.]+)", data.command("smi-version").stdout, re.M | re.I)
    return found.group(1) if found else None


def _state(said: str, installed: str | None, loaded: str | None, library: str | None, nouveau: bool) -> str:
    if said == "mismatch" or (installed and loaded and not nvidia_smi.same_version(installed, loaded)):
        return "mismatch"
    if said in ("ok", "lost") and loaded:
        return "loaded"
    if said == "no-devices":
        return "no-devices"
    if loaded and said in ("hung", "failed", "library-missing", "permission", "no-driver", "bad-field"):
        return "failed"
    if loaded and said == "not-installed":
        return "failed"
    if nouveau:
        return "nouveau"
    if said == "ok":
        return "loaded"
    return "installed" if installed or said in ("no-driver", "library-missing") else "absent"


def _secure_boot(data: Raw) -> bool | None:
    hexadecimal = data.get("secure_boot")
    if not data.get("efi"):
        return False
    return linux_texts.secure_boot(
        hexadecimal if isinstance(hexadecimal, str) else None, data.command("mokutil").text
    )
