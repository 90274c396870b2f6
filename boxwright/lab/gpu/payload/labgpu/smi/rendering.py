"""`nvidia-smi -q` as indented text, and as XML (-x)."""

from __future__ import annotations

import re
import time
from typing import Any, Dict, List, Optional, Tuple
from xml.sax.saxutils import escape

from .. import rig
from .details import Tree, tree
from .driver import Driver, Failure
from .reading import take

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
CLOCK_TAGS = {"Graphics": "graphics_clock", "SM": "sm_clock", "Memory": "mem_clock", "Video": "video_clock"}
MODE_TAGS = {"MIG Mode": "mig", "ECC Mode": "ecc"}
#: XML names that are not the English ones in lower case, by heading ("" for the outermost level).
TAGS: Dict[str, Dict[str, str]] = {
    "": {"GPU UUID": "uuid", "Serial Number": "serial", "MultiGPU Board": "multigpu_board"},
    "Clocks": CLOCK_TAGS,
    "Max Clocks": CLOCK_TAGS,
    "Applications Clocks": CLOCK_TAGS,
    "Max Customer Boost Clocks": CLOCK_TAGS,
    "Utilization": {name: name.lower() + "_util" for name in ("GPU", "Memory", "Encoder", "Decoder")},
    "PCI": {
        "Bus": "pci_bus",
        "Device": "pci_device",
        "Domain": "pci_domain",
        "Device Id": "pci_device_id",
        "Bus Id": "pci_bus_id",
        "Sub System Id": "pci_sub_system_id",
        "GPU Link Info": "pci_gpu_link_info",
    },
    "GPU Link Info": {"PCIe Generation": "pcie_gen", "Link Width": "link_widths"},
    "PCIe Generation": {
        "Max": "max_link_gen",
        "Current": "current_link_gen",
        "Device Current": "device_current_link_gen",
        "Device Max": "max_device_link_gen",
        "Host Max": "max_host_link_gen",
    },
    "Link Width": {"Max": "max_link_width", "Current": "current_link_width"},
    "Temperature": {
        "GPU Current Temp": "gpu_temp",
        "GPU T.Limit Temp": "gpu_temp_tlimit",
        "GPU Shutdown Temp": "gpu_temp_max_threshold",
        "GPU Slowdown Temp": "gpu_temp_slow_threshold",
        "GPU Max Operating Temp": "gpu_temp_max_gpu_threshold",
        "GPU Shutdown T.Limit Temp": "gpu_temp_max_tlimit_threshold",
        "GPU Slowdown T.Limit Temp": "gpu_temp_slow_tlimit_threshold",
        "GPU Max Operating T.Limit Temp": "gpu_temp_max_gpu_tlimit_threshold",
        "Memory Current Temp": "memory_temp",
    },
    "GPU Power Readings": {"Instantaneous Power Draw": "instant_power_draw"},
}


def show(driver: Driver, cards: List[rig.Card], display: Optional[str], xml: bool) -> int:
    """Print everything, or the sections of -d. Raises Failure for a section that does not exist."""
    if display and xml:
        raise Failure(
            2,
            "Invalid combination of input arguments: --display/-d flags can not be combined with "
            "-x/--xml-format flags.\n",
        )
    wanted = _headings(display) if display else None
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
                for name, value in tree(card, take(card), driver)
                if (name in wanted if wanted else name not in ONLY_ON_DEMAND or xml)
            ],
        )
        for card in cards
    ]
    if xml:
        _xml(head, trees)
        return 0
    # The column of values moved to the right with branch 595.
    column = 54 if driver.branch >= 595 else 41
    print("\n==============NVSMI LOG==============\n")
    _text(head, 0, column)
    for card, facts in trees:
        print("GPU %s" % card.smi_bus_id)
        _text(facts, 1, column)
        print()
    return 0


def _headings(display: str) -> List[str]:
    names = display.upper().split(",")
    if not set(names) <= set(SECTIONS):
        raise Failure(2, "Failed to parse --display/-d flags")
    return [heading for name in names for heading in SECTIONS[name]]


def _text(facts: Tree, depth: int, column: int) -> None:
    for name, value in facts:
        if isinstance(value, list):
            print("    " * depth + name)
            _text(value, depth + 1, column)
        else:
            print("%s : %s" % (("    " * depth + name).ljust(column), value))


def _xml(head: Tree, trees: List[Tuple[rig.Card, Tree]]) -> None:
    print('<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n<nvidia_smi_log>')
    _elements(head, "", 1)
    for card, facts in trees:
        print('\t<gpu id="%s">' % card.smi_bus_id)
        _elements(facts, "", 2)
        print("\t</gpu>")
    print("\n</nvidia_smi_log>")


def _elements(facts: Tree, heading: str, depth: int) -> None:
    indent = "\t" * depth
    for name, value in facts:
        tag = _tag(heading, name)
        if not isinstance(value, list):
            print("%s<%s>%s</%s>" % (indent, tag, escape(str(value)), tag))
            continue
        print("%s<%s>" % (indent, tag))
        if name == "Supported Clocks":
            _supported(value, indent + "\t")
        else:
            _elements(value, name, depth + 1)
        print("%s</%s>" % (indent, tag))


def _supported(facts: Tree, indent: str) -> None:
    """Clocks as pairs: every graphics clock below its memory clock."""
    opened = False
    for name, value in facts:
        if name == "Memory":
            if opened:
                print("%s</supported_mem_clock>" % indent)
            print("%s<supported_mem_clock>\n%s\t<value>%s</value>" % (indent, indent, value))
            opened = True
        else:
            print("%s\t<supported_graphics_clock>%s</supported_graphics_clock>" % (indent, value))
    print("%s</supported_mem_clock>" % indent)


def _tag(heading: str, name: Any) -> str:
    if name in TAGS.get(heading, {}):
        return TAGS[heading][name]
    tag = re.sub(r"[^a-z0-9]+", "_", str(name).lower()).strip("_")
    if heading in MODE_TAGS:
        return "%s_%s" % (tag, MODE_TAGS[heading])
    if heading == "Clocks Event Reasons":
        return "clocks_event_reason_" + ("gpu_idle" if tag == "idle" else tag)
    return tag
