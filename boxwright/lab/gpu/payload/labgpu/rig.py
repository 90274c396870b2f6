"""The cards of this host, from rig.json: what the simulated hardware is."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Dict, List, NamedTuple, Tuple

from . import files, paths


class Idle(NamedTuple):
    """What a card of an architecture shows without work. Clocks in MHz, power in W, temperature in °C."""

    graphics: int
    memory: int
    power: float
    temperature: int


#: Recorded idle values (RTX 5090 on 570, RTX 4080 SUPER on 595); Ampere's are the usual ones of the field.
IDLE = {
    "Blackwell": Idle(22, 405, 24.19, 33),
    "Ada Lovelace": Idle(210, 405, 26.20, 43),
    "Ampere": Idle(210, 405, 21.37, 38),
}
#: How far the memory clock under compute load (P2) stays below its maximum, in MHz.
P2_MEMORY_OFFSET = {"Blackwell": 200, "Ada Lovelace": 250, "Ampere": 250}
#: Bridged Ampere cards: four links of 14.062 GB/s (RTX 3090, RTX A6000).
NVLINK_SPEED = "14.062 GB/s"


@dataclass(frozen=True)
class Card:
    """One card. Memory in MiB, power in W, clocks in MHz; PCI identifiers in lower-case hex."""

    index: int
    name: str
    architecture: str
    compute_capability: str
    uuid: str
    bus_id: str
    numa_node: int
    pci_vendor: str
    pci_device: str
    pci_subsystem_vendor: str
    pci_subsystem_device: str
    pci_class: str
    memory_total: int
    memory_reserved: int
    bar1_total: int
    power_default: int
    power_min: int
    power_max: int
    clock_graphics_max: int
    clock_memory_max: int
    pcie_generation: int
    pcie_width: int
    vbios: str

    @property
    def smi_bus_id(self) -> str:
        """The bus address as nvidia-smi writes it: 00000000:01:00.0."""
        return "0000" + self.bus_id.upper()

    @property
    def idle(self) -> Idle:
        """What the card shows without work."""
        return IDLE[self.architecture]

    @property
    def clock_memory_load(self) -> int:
        """Memory clock under compute load, in MHz."""
        return self.clock_memory_max - P2_MEMORY_OFFSET[self.architecture]

    def graphics_clocks(self) -> List[int]:
        """Every graphics clock that can be chosen, highest first, in MHz.

        Blackwell steps by 7.5 MHz, told as 7 and 8 in turn; earlier architectures by 15 MHz.
        """
        if self.architecture == "Blackwell":
            count = (self.clock_graphics_max - 180) * 2 // 15
            return [self.clock_graphics_max - (15 * step + 1) // 2 for step in range(count + 1)]
        return list(range(self.clock_graphics_max, 195, -15))

    def memory_clocks(self) -> List[int]:
        """Every memory clock that can be chosen, highest first, in MHz."""
        if self.architecture == "Blackwell":
            return [self.clock_memory_max]
        return [self.clock_memory_max, self.clock_memory_load, 5001, 810, 405]


class Rig(NamedTuple):
    """The cards of this host. link: word of `topo -m` between any two. nouveau: the kernel has it."""

    name: str
    cards: Tuple[Card, ...]
    link: str
    nouveau: bool

    @property
    def nvlinks(self) -> int:
        """How many NVLink connections a card has to its neighbor."""
        return int(self.link[2:]) if self.link.startswith("NV") and len(self.cards) > 1 else 0


def load() -> Rig:
    """The rig of this host. A host without rig.json has no card."""
    document: Dict[str, Any] = files.read_json(paths.RIG) or {}
    cards = tuple(
        Card(**{field.name: card[field.name] for field in fields(Card)}) for card in document.get("cards", ())
    )
    return Rig(
        document.get("name", "none"), cards, document.get("link", "PHB"), document.get("nouveau", False)
    )
