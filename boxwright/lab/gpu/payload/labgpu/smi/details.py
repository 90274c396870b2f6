"""What `nvidia-smi -q` knows of a card: a tree of headings and facts."""

from __future__ import annotations

from typing import Any, List, Tuple

from .. import rig
from .driver import Driver
from .fields import REASONS
from .query import processes
from .reading import Reading

#: (heading, its facts) or (name, value), in the order of nvidia-smi.
Tree = List[Tuple[str, Any]]


def _mhz(value: int) -> str:
    return "%d MHz" % value


def tree(card: rig.Card, now: Reading, driver: Driver) -> Tree:
    """Everything that nvidia-smi knows of one card."""
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
