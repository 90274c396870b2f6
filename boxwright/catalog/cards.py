"""Kinds of NVIDIA cards, and which kind a found card is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from boxwright.catalog import reading

#: MiB that the driver is taken to keep of a card where no recording says it: the most recorded on a GeForce.
ASSUMED_RESERVED_MIB = 487
#: Cards of one kind differ by a few MiB between driver branches; another kind differs by gigabytes.
SAME_MEMORY_MIB = 1024


@dataclass(frozen=True)
class CardKind:
    """A kind of card.

    memory_mib, reserved_mib: of nvidia-smi. bandwidth_gbs: 10^9 bytes a second. tflops: dense 16-bit.
    power_*: W. clock_*: highest, MHz. driver_branch: the first that knows it. unconfirmed: names of fields
    that no recording confirms. None is unknown.
    """

    id: str
    name: str
    names: tuple[str, ...]
    pci: tuple[str, ...]
    generation: str
    compute_capability: str
    memory_mib: int
    reserved_mib: int | None
    bandwidth_gbs: float
    tflops: float | None
    pcie_generation: int
    pcie_width: int
    nvlink: str | None
    power_default_w: float | None
    power_min_w: float | None
    power_max_w: float | None
    clock_graphics_mhz: int | None
    clock_memory_mhz: int | None
    driver_branch: int
    geforce: bool
    unconfirmed: tuple[str, ...] = ()

    @property
    def capability(self) -> tuple[int, ...]:
        """Compute capability for comparing: (8, 6)."""
        return reading.version(self.compute_capability)

    @property
    def usable_mib(self) -> int:
        """Memory that programs get: total less what the driver reserves."""
        return self.memory_mib - (
            self.reserved_mib if self.reserved_mib is not None else ASSUMED_RESERVED_MIB
        )


def load() -> tuple[CardKind, ...]:
    """All kinds of the catalog."""
    return tuple(_kind(entry) for entry in reading.yaml_file("cards.yml"))


def _kind(entry: Mapping[str, Any]) -> CardKind:
    power, clocks, pcie = entry["power_w"], entry["clocks_mhz"], entry["pcie"]
    return CardKind(
        id=entry["id"],
        name=entry["names"][0],
        names=tuple(entry["names"]),
        pci=tuple(entry["pci"]),
        generation=entry["generation"],
        compute_capability=entry["compute_capability"],
        memory_mib=entry["memory_mib"],
        reserved_mib=entry["reserved_mib"],
        bandwidth_gbs=entry["bandwidth_gbs"],
        tflops=entry["tflops"],
        pcie_generation=pcie["generation"],
        pcie_width=pcie["width"],
        nvlink=entry["nvlink"],
        power_default_w=power["default"],
        power_min_w=power["min"],
        power_max_w=power["max"],
        clock_graphics_mhz=clocks["graphics"],
        clock_memory_mhz=clocks["memory"],
        driver_branch=entry["driver_branch"],
        geforce=bool(entry.get("geforce")),
        unconfirmed=tuple(entry.get("unconfirmed", ())),
    )


def _plain(name: str) -> str:
    bare = re.sub(r"\b(nvidia|geforce|quadro|tesla)\b", " ", name.lower())
    return " ".join(bare.replace("-", " ").split())


def recognise(
    kinds: Sequence[CardKind], name: str | None, pci_id: str, memory_mib: int | None
) -> CardKind | None:
    """The kind of a card: by name and memory where a driver tells them, else by its PCI id.

    None: none of these.

    A name is believed only with its memory: a card with a modified memory, or a cut-down relative that
    answers to the same name, is another card to the planner.
    """
    if name is not None:
        alike = [kind for kind in kinds if _plain(name) in {_plain(one) for one in kind.names}]
    else:
        alike = [kind for kind in kinds if pci_id.lower() in kind.pci]
    if memory_mib is None:
        return alike[0] if alike else None
    return next((kind for kind in alike if abs(kind.memory_mib - memory_mib) <= SAME_MEMORY_MIB), None)
