"""`nvidia-smi -q`: one tree of facts, as indented text or as XML."""

from __future__ import annotations

import re
import time
from typing import Any, Dict, List, Optional, Tuple
from xml.sax.saxutils import escape

from .. import rig
from .driver import Driver, Failure
from .fields import REASONS
from .query import processes
from .reading import Reading, take

Tree = List[Tuple[str, Any]]
#: Sections that -d can choose, with the headings they stand for.
SECTIONS: Dict[str, Tuple[str, ...]] = {
    "MEMORY": ("FB Memory Usage", "BAR1 Memory Usage"),
    "UTILIZATION": ("Utilization",),
    "ECC": ("ECC Mode",),
    "TEMPERATURE": ("Temperature",),
    "POWER": ("GPU Power Readings",),
    "CLOCK": ("Clocks", "Applications Clocks", "Max Clocks", "Max Customer Boost Clocks"),
    "COMPUTE": ("Compute Mode",),
    "PIDS": ("Processes",),
    "PERFORMANCE": ("Performance State", "Clocks Event Reasons"),
    "SUPPORTED_CLOCKS": ("Supported Clocks",),
}
#: Facts that the plain -q leaves out.
ONLY_ON_DEMAND = ("Supported Clocks",)


def show(driver: Driver, cards: List[rig.Card], display: Optional[str], xml: bool) -> int:
    """Print everything, or the sections of -d. Raises Failure for a section that does not exist."""
    wanted: Optional[List[str]] = None
    if display:
        unknown = [name for name in display.upper().split(",") if name not in SECTIONS]
        if unknown:
            raise Failure(2, "Invalid display type: %s" % unknown[0])
        wanted = [heading for name in display.upper().split(",") for heading in SECTIONS[name]]
    head: Tree = [
        ("Timestamp", time.strftime("%a %b %e %H:%M:%S %Y")),
        ("Driver Version", driver.version),
        ("CUDA Version", driver.cuda),
        ("Attached GPUs", str(len(driver.cards))),
    ]
    trees = [
        (
            card,
            [
                (name, value)
                for name, value in _tree(card, take(card), driver)
                if (name in wanted if wanted else name not in ONLY_ON_DEMAND or xml)
            ],
        )
        for card in cards
    ]
    if xml:
        _xml(head, trees)
        return 0
    width = 51 if driver.branch >= 595 else 38
    print("\n==============NVSMI LOG==============\n")
    _text(head, 0, width)
    for card, tree in trees:
        print("GPU %s" % card.smi_bus_id)
        _text(tree, 1, width)
        print()
    return 0


def _text(tree: Tree, depth: int, width: int) -> None:
    for name, value in tree:
        if isinstance(value, list):
            print("%s%s" % ("    " * depth, name))
            _text(value, depth + 1, width)
        else:
            label = "    " * depth + name
            print("%s : %s" % (label.ljust(width + 3), value))


def _xml(head: Tree, trees: List[Tuple[rig.Card, Tree]]) -> None:
    print('<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n<nvidia_smi_log>')
    _elements(head, 1)
    for card, tree in trees:
        print('\t<gpu id="%s">' % card.smi_bus_id)
        _elements(tree, 2)
        print("\t</gpu>")
    print("\n</nvidia_smi_log>")


def _elements(tree: Tree, depth: int) -> None:
    names = {"gpu": "gpu_util", "bar1_memory_usage": "bar1_memory_usage"}
    for name, value in tree:
        tag = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
        tag = names.get(tag, tag)
        indent = "\t" * depth
        if isinstance(value, list):
            print("%s<%s>" % (indent, tag))
            _elements(value, depth + 1)
            print("%s</%s>" % (indent, tag))
        else:
            print("%s<%s>%s</%s>" % (indent, tag, escape(str(value)), tag))


def _mhz(value: int) -> str:
    return "%d MHz" % value


def _tree(card: rig.Card, now: Reading, driver: Driver) -> Tree:
    clocks: Tree = [
        ("Graphics", _mhz(now.graphics)),
        ("SM", _mhz(now.graphics)),
        ("Memory", _mhz(now.memory_clock)),
        ("Video", _mhz(max(now.graphics * 3 // 4, 555))),
    ]
    return [
        ("Product Name", card.name),
        ("Product Brand", "GeForce"),
        ("Product Architecture", card.architecture),
        (
            "Display Mode",
            "Requested functionality has been deprecated" if driver.branch >= 595 else "Disabled",
        ),
        ("Display Attached", "No"),
        ("Display Active", "Disabled"),
        ("Persistence Mode", "Enabled" if now.persistence else "Disabled"),
        ("Addressing Mode", "HMM"),
        ("MIG Mode", [("Current", "N/A"), ("Pending", "N/A")]),
        ("Accounting Mode", "Disabled"),
        ("Serial Number", "N/A"),
        ("GPU UUID", card.uuid),
        ("Minor Number", str(card.index)),
        ("VBIOS Version", card.vbios),
        ("MultiGPU Board", "No"),
        ("GPU Part Number", "N/A"),
        ("GPU Virtualization Mode", [("Virtualization Mode", "None"), ("Host VGPU Mode", "N/A")]),
        ("GPU Reset Status", [("Reset Required", "Requested functionality has been deprecated")]),
        (
            "PCI",
            [
                ("Bus", "0x" + card.bus_id[5:7].upper()),
                ("Device", "0x00"),
                ("Domain", "0x0000"),
                ("Device Id", "0x%s%s" % (card.pci_device.upper(), card.pci_vendor.upper())),
                ("Bus Id", card.smi_bus_id),
                (
                    "Sub System Id",
                    "0x%s%s" % (card.pci_subsystem_device.upper(), card.pci_subsystem_vendor.upper()),
                ),
                (
                    "GPU Link Info",
                    [
                        (
                            "PCIe Generation",
                            [
                                ("Max", card.pcie_generation),
                                ("Current", now.link_generation),
                                ("Device Current", now.link_generation),
                                ("Device Max", card.pcie_generation),
                                ("Host Max", card.pcie_generation),
                            ],
                        ),
                        (
                            "Link Width",
                            [("Max", "%dx" % card.pcie_width), ("Current", "%dx" % card.pcie_width)],
                        ),
                    ],
                ),
            ],
        ),
        ("Fan Speed", "%d %%" % (44 if now.busy else 0)),
        ("Performance State", now.pstate),
        (
            "Clocks Event Reasons",
            [
                (name, "Active" if now.reasons & REASONS[bit] else "Not Active")
                for name, bit in (
                    ("Idle", "gpu_idle"),
                    ("Applications Clocks Setting", "applications_clocks_setting"),
                    ("SW Power Cap", "sw_power_cap"),
                    ("HW Slowdown", "hw_slowdown"),
                    ("HW Thermal Slowdown", "hw_thermal_slowdown"),
                    ("HW Power Brake Slowdown", "hw_power_brake_slowdown"),
                    ("Sync Boost", "sync_boost"),
                    ("SW Thermal Slowdown", "sw_thermal_slowdown"),
                )
            ],
        ),
        (
            "FB Memory Usage",
            [
                ("Total", "%d MiB" % card.memory_total),
                ("Reserved", "%d MiB" % card.memory_reserved),
                ("Used", "%d MiB" % now.used),
                ("Free", "%d MiB" % now.free),
            ],
        ),
        (
            "BAR1 Memory Usage",
            [
                ("Total", "%d MiB" % card.bar1_total),
                ("Used", "1 MiB"),
                ("Free", "%d MiB" % (card.bar1_total - 1)),
            ],
        ),
        ("Compute Mode", "Default"),
        (
            "Utilization",
            [
                ("GPU", "%d %%" % now.utilization),
                ("Memory", "%d %%" % (now.utilization * 6 // 10)),
                ("Encoder", "0 %"),
                ("Decoder", "0 %"),
            ],
        ),
        ("ECC Mode", [("Current", "N/A"), ("Pending", "N/A")]),
        ("Temperature", _temperature(card, now)),
        (
            "GPU Power Readings",
            [
                ("Average Power Draw", "%.2f W" % now.power),
                ("Instantaneous Power Draw", "%.2f W" % now.power),
                ("Current Power Limit", "%.2f W" % now.power_limit),
                ("Requested Power Limit", "%.2f W" % now.power_limit),
                ("Default Power Limit", "%.2f W" % card.power_default),
                ("Min Power Limit", "%.2f W" % card.power_min),
                ("Max Power Limit", "%.2f W" % card.power_max),
            ],
        ),
        ("Clocks", clocks),
        ("Applications Clocks", [("Graphics", "N/A"), ("Memory", "N/A")]),
        (
            "Max Clocks",
            [
                ("Graphics", _mhz(card.clock_graphics_max)),
                ("SM", _mhz(card.clock_graphics_max)),
                ("Memory", _mhz(card.clock_memory_max)),
                ("Video", _mhz(card.clock_graphics_max * 3 // 4)),
            ],
        ),
        ("Max Customer Boost Clocks", [("Graphics", "N/A")]),
        (
            "Supported Clocks",
            [
                ("Memory", _mhz(memory)) if graphics is None else ("    Graphics", _mhz(graphics))
                for memory in card.memory_clocks()
                for graphics in [None, *card.graphics_clocks()]
            ],
        ),
        (
            "Processes",
            [
                ("GPU instance ID", "N/A"),
                *[
                    item
                    for _, pid, process, memory in processes([card])
                    for item in (
                        ("Process ID", str(pid)),
                        ("Type", "C"),
                        ("Name", process),
                        ("Used GPU Memory", "%d MiB" % memory),
                    )
                ],
            ]
            if processes([card])
            else "None",
        ),
    ]


def _temperature(card: rig.Card, now: Reading) -> Tree:
    """Blackwell tells margins to the limit, earlier cards degrees."""
    if card.architecture == "Blackwell":
        return [
            ("GPU Current Temp", "%d C" % now.temperature),
            ("GPU T.Limit Temp", "%d C" % (90 - now.temperature)),
            ("GPU Shutdown T.Limit Temp", "-5 C"),
            ("GPU Slowdown T.Limit Temp", "-2 C"),
            ("GPU Max Operating T.Limit Temp", "0 C"),
            ("GPU Target Temperature", "83 C"),
        ]
    return [
        ("GPU Current Temp", "%d C" % now.temperature),
        ("GPU Shutdown Temp", "98 C"),
        ("GPU Slowdown Temp", "95 C"),
        ("GPU Max Operating Temp", "93 C"),
        ("GPU Target Temperature", "83 C"),
        ("Memory Current Temp", "N/A"),
    ]
