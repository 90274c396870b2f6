"""Facts of a host that was not asked: the declared cards with the catalog's figures, and a driver as
declared.
"""

from __future__ import annotations

from boxwright.catalog import CardKind, Catalog
from boxwright.facts.model import Card, Clocks, Driver, HostFacts, Link, OperatingSystem, Power
from boxwright.spec.box import Box

#: Cards beyond this number are no host.
MOST_CARDS = 64


def offline_facts(box: Box, catalog: Catalog) -> HostFacts:
    """Facts to plan with when there is no host to ask.

    What is not declared and not in the catalog stays unknown.
    """
    cards: list[Card] = []
    for declared in box.gpus:
        kind = catalog.card(declared.model)
        for _ in range(min(max(0, declared.count), MOST_CARDS)):
            if kind and len(cards) < MOST_CARDS:
                cards.append(_card(len(cards), kind))
    driver = Driver(state="loaded", loaded_version=box.driver.upstream or box.driver.branch, flavor="open")
    return HostFacts(
        host=box.host,
        os=OperatingSystem("", "", "", "", ""),
        cards=tuple(cards),
        driver=driver,
        recorded=False,
    )


def _card(index: int, kind: CardKind) -> Card:
    return Card(
        index=index,
        pci_bus=f"0000:{index + 1:02x}:00.0",
        pci_id=kind.pci[0] if kind.pci else "",
        name=f"NVIDIA {'GeForce ' if kind.geforce else ''}{kind.name}",
        memory_total_mib=kind.memory_mib,
        memory_reserved_mib=kind.memory_mib - kind.usable_mib,
        compute_capability=kind.compute_capability,
        clocks=Clocks(max_graphics=kind.clock_graphics_mhz, max_memory=kind.clock_memory_mhz),
        power=Power(kind.power_default_w, kind.power_default_w, kind.power_min_w, kind.power_max_w),
        link=Link(kind.pcie_generation, kind.pcie_generation, kind.pcie_width, kind.pcie_width),
        kernel_driver="nvidia",
    )
