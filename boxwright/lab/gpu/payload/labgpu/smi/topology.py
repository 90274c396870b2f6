"""topo -m, topo -p2p and nvlink -s."""

from __future__ import annotations

import os
from typing import List

from .. import rig
from .driver import Driver

LEGEND = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node
  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)
  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)
  PIX  = Connection traversing at most a single PCIe bridge
  NV#  = Connection traversing a bonded set of # NVLinks
"""
P2P_LEGEND = """
Legend:

  X    = Self
  OK   = Status Ok
  CNS  = Chipset not supported
  GNS  = GPU not supported
  TNS  = Topology not supported
  NS   = Not supported
  U    = Unknown
"""
#: Answer to peer-to-peer questions without a bridge: 2x5090 GNS, 3090s CNS as recorded; Ada as Ampere.
P2P = {"Blackwell": "GNS", "Ada Lovelace": "CNS", "Ampere": "CNS"}


def matrix(driver: Driver) -> int:
    """`topo -m`. Since branch 590 the header is underlined by escape codes, also into a file."""
    names = ["GPU%d" % card.index for card in driver.cards]
    header = "\t".join([*names, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"])
    print("\x1b[4m%s\x1b[0m" % header if driver.branch >= 590 else "\t" + header)
    cores = "0-%d" % ((os.cpu_count() or 1) - 1)
    for card in driver.cards:
        cells = [" X " if other is card else driver.rig.link for other in driver.cards]
        print("\t".join(["GPU%d" % card.index, *cells, cores, str(card.numa_node), "", "N/A"]))
    print(LEGEND, end="")
    return 0


def peers(driver: Driver, _capability: str) -> int:
    """`topo -p2p r|w|n|a|p`."""
    print(" \t" + "\t".join("GPU%d" % card.index for card in driver.cards) + "\t")
    for card in driver.cards:
        cells = [
            "X" if other is card else "OK" if driver.rig.nvlinks else P2P[card.architecture]
            for other in driver.cards
        ]
        print(" GPU%d\t%s\t" % (card.index, "\t".join(cells)))
    print(P2P_LEGEND, end="")
    return 0


def nvlink(driver: Driver, cards: List[rig.Card]) -> int:
    """`nvlink -s`: speed of each link, or why there is none."""
    for card in cards:
        print("GPU %d: %s (UUID: %s)" % (card.index, card.name, card.uuid))
        if driver.rig.nvlinks and card.architecture == "Ampere":
            for link in range(driver.rig.nvlinks):
                print("\t Link %d: %s" % (link, rig.NVLINK_SPEED))
        elif card.architecture == "Ampere":
            print("NVML: Unable to retrieve Nvlink information as all links are inActive")
        else:
            print("Device does not have or support Nvlink")
    return 0
