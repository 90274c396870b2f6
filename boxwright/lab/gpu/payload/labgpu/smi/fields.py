"""The fields of --query-gpu: canonical name, other names, unit, and where the value comes from."""

from __future__ import annotations

from typing import Callable, Dict, List, NamedTuple

from .. import rig
from .driver import Driver
from .reading import Reading

NOT_AVAILABLE = "[N/A]"
DEPRECATED = "[Requested functionality has been deprecated]"
#: Bits of clocks_event_reasons.active (nvml.h, nvmlClocksEventReason…).
REASONS = {
    "gpu_idle": 0x1,
    "applications_clocks_setting": 0x2,
    "sw_power_cap": 0x4,
    "hw_slowdown": 0x8,
    "sync_boost": 0x10,
    "sw_thermal_slowdown": 0x20,
    "hw_thermal_slowdown": 0x40,
    "hw_power_brake_slowdown": 0x80,
}

Value = Callable[[rig.Card, Reading, Driver], str]


class Field(NamedTuple):
    """One column. dynamic: the value is measured, so a failing card may not give it."""

    name: str
    unit: str
    value: Value
    dynamic: bool


def _table() -> Dict[str, Field]:
    table: Dict[str, Field] = {}

    def add(name: str, value: Value, unit: str = "", others: str = "", dynamic: bool = False) -> None:
        field = Field(name, unit, value, dynamic)
        for spelling in [name, *others.split()]:
            table[spelling] = field

    add("timestamp", lambda c, r, d: _timestamp())
    add("driver_version", lambda c, r, d: d.version)
    add("count", lambda c, r, d: str(len(d.cards)))
    add("name", lambda c, r, d: c.name, others="gpu_name")
    add("index", lambda c, r, d: str(c.index))
    add("uuid", lambda c, r, d: c.uuid, others="gpu_uuid")
    add("serial", lambda c, r, d: NOT_AVAILABLE, others="gpu_serial")
    add("vbios_version", lambda c, r, d: c.vbios)
    add("compute_cap", lambda c, r, d: c.compute_capability)
    add("addressing_mode", lambda c, r, d: "HMM")
    add("pci.bus_id", lambda c, r, d: c.smi_bus_id, others="gpu_bus_id")
    add("pci.domain", lambda c, r, d: "0x0000")
    add("pci.bus", lambda c, r, d: "0x" + c.bus_id[5:7].upper())
    add("pci.device", lambda c, r, d: "0x00")
    add("pci.device_id", lambda c, r, d: "0x%s%s" % (c.pci_device.upper(), c.pci_vendor.upper()))
    add(
        "pci.sub_device_id",
        lambda c, r, d: "0x%s%s" % (c.pci_subsystem_device.upper(), c.pci_subsystem_vendor.upper()),
    )
    add(
        "pcie.link.gen.current",
        lambda c, r, d: str(r.link_generation),
        others="pcie.link.gen.gpucurrent",
        dynamic=True,
    )
    add("pcie.link.gen.max", lambda c, r, d: str(c.pcie_generation))
    add("pcie.link.gen.gpumax", lambda c, r, d: str(c.pcie_generation))
    add("pcie.link.gen.hostmax", lambda c, r, d: str(c.pcie_generation))
    add("pcie.link.width.current", lambda c, r, d: str(c.pcie_width), dynamic=True)
    add("pcie.link.width.max", lambda c, r, d: str(c.pcie_width))
    add("display_active", lambda c, r, d: "Disabled")
    add("display_mode", _since(595, "Disabled"))
    add("display_attached", lambda c, r, d: "No")
    add("persistence_mode", lambda c, r, d: "Enabled" if r.persistence else "Disabled")
    add("accounting.mode", lambda c, r, d: "Disabled")
    add("accounting.buffer_size", lambda c, r, d: "4000")
    add("driver_model.current", lambda c, r, d: NOT_AVAILABLE)
    add("driver_model.pending", lambda c, r, d: NOT_AVAILABLE)
    add("inforom.img", lambda c, r, d: "G001.0000.94.01")
    add("fan.speed", lambda c, r, d: "%d" % (44 if r.busy else 0), " %", dynamic=True)
    add("pstate", lambda c, r, d: r.pstate, dynamic=True)
    for spelling in ("clocks_event_reasons", "clocks_throttle_reasons"):
        _reasons(table, spelling)
    add("memory.total", lambda c, r, d: str(c.memory_total), " MiB")
    add("memory.reserved", lambda c, r, d: str(c.memory_reserved), " MiB")
    add("memory.used", lambda c, r, d: str(r.used), " MiB", dynamic=True)
    add("memory.free", lambda c, r, d: str(r.free), " MiB", dynamic=True)
    add("compute_mode", lambda c, r, d: "Default")
    for name in ("gpu", "memory", "encoder", "decoder", "jpeg", "ofa"):
        add("utilization." + name, _utilization(name), " %", dynamic=True)
    for name in (
        "ecc.mode.current",
        "ecc.mode.pending",
        "mig.mode.current",
        "mig.mode.pending",
        "gom.current",
        "gom.pending",
        "ecc.errors.corrected.volatile.total",
        "ecc.errors.uncorrected.volatile.total",
        "retired_pages.pending",
        "ecc.errors.corrected.aggregate.total",
        "ecc.errors.uncorrected.aggregate.total",
        "retired_pages.sbe",
        "retired_pages.dbe",
    ):
        add(name, lambda c, r, d: NOT_AVAILABLE)
    add("temperature.gpu", lambda c, r, d: str(r.temperature), dynamic=True)
    add("temperature.gpu.tlimit", lambda c, r, d: str(90 - r.temperature), dynamic=True)
    add("temperature.memory", lambda c, r, d: "N/A")
    for name in ("fabric.state", "fabric.status"):
        add(name, lambda c, r, d: "N/A")
    add("power.management", _since(595, "Enabled"))
    for name in ("power.draw", "power.draw.instant", "power.draw.average"):
        add(name, lambda c, r, d: "%.2f" % r.power, " W", dynamic=True)
    add("power.limit", lambda c, r, d: "%.2f" % r.power_limit, " W")
    add("enforced.power.limit", lambda c, r, d: "%.2f" % r.power_limit, " W")
    add("power.default_limit", lambda c, r, d: "%.2f" % c.power_default, " W")
    add("power.min_limit", lambda c, r, d: "%.2f" % c.power_min, " W")
    add("power.max_limit", lambda c, r, d: "%.2f" % c.power_max, " W")
    for name, other in (("graphics", "gr"), ("sm", "sm")):
        add(
            "clocks.current." + name,
            lambda c, r, d: str(r.graphics),
            " MHz",
            "clocks." + name + " clocks." + other,
            dynamic=True,
        )
        add("clocks.max." + name, lambda c, r, d: str(c.clock_graphics_max), " MHz", "clocks.max." + other)
    add(
        "clocks.current.memory",
        lambda c, r, d: str(r.memory_clock),
        " MHz",
        "clocks.mem clocks.memory",
        dynamic=True,
    )
    add("clocks.max.memory", lambda c, r, d: str(c.clock_memory_max), " MHz", "clocks.max.mem")
    add(
        "clocks.current.video",
        lambda c, r, d: str(max(r.graphics * 3 // 4, 555)),
        " MHz",
        "clocks.video",
        dynamic=True,
    )
    for name, other in (("graphics", "gr"), ("memory", "mem")):
        for kind in ("applications", "default_applications"):
            add(
                "clocks.%s.%s" % (kind, name),
                _since(595, NOT_AVAILABLE),
                " MHz",
                "clocks.%s.%s" % (kind, other),
            )
    return table


def _reasons(table: Dict[str, Field], spelling: str) -> None:
    """Both spellings of the reasons have the present one as header (driver 535 and later)."""
    table[spelling + ".supported"] = Field(
        "clocks_event_reasons.supported", "", lambda c, r, d: "0x%016X" % 0x1FF, False
    )
    table[spelling + ".active"] = Field(
        "clocks_event_reasons.active", "", lambda c, r, d: "0x%016X" % r.reasons, True
    )
    for name, bit in REASONS.items():
        table["%s.%s" % (spelling, name)] = Field("clocks_event_reasons." + name, "", _active(bit), True)


def _active(bit: int) -> Value:
    return lambda c, r, d: "Active" if r.reasons & bit else "Not Active"


def _utilization(unit: str) -> Value:
    share = {"gpu": 1.0, "memory": 0.6}.get(unit, 0.0)
    return lambda c, r, d: "%d" % (r.utilization * share)


def _since(branch: int, value: str) -> Value:
    """A value that newer branches call deprecated."""
    return lambda c, r, d: DEPRECATED if d.branch >= branch else value


def _timestamp() -> str:
    import time

    return time.strftime("%Y/%m/%d %H:%M:%S.000")


FIELDS = _table()
NAMES: List[str] = list(FIELDS)
