#!/usr/bin/python3
"""Write what nvidia-smi and the kernel tell of the cards, and what has drifted, as Prometheus text.

    gpu_metrics.py OUTPUT CONFIG_DIRECTORY

Installed by Boxwright's role monitoring, with the modules that it imports beside it, and run by a timer. The
node exporter's textfile collector hands the file on. Works on every card that nvidia-smi knows, GeForce too.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import command
import file_state
import nvidia_smi

#: Seconds for one call of nvidia-smi: a card that hangs is not waited for.
SMI_TIMEOUT, LOG_TIMEOUT = 15, 20
PREFIX = "boxwright_gpu_"
MIB, MEGA, PERCENT = 1 << 20, 1e6, 0.01
IDENTITY = ("index", "uuid", "name", "driver_version", "pci.bus_id")
#: Field of nvidia-smi, metric, factor to its unit, help.
VALUES = (
    ("temperature.gpu", "temperature_celsius", 1, "Temperature of the chip."),
    ("temperature.memory", "memory_temperature_celsius", 1, "Temperature of the memory, where it is told."),
    ("utilization.gpu", "utilization_ratio", PERCENT, "Share of the time in which some kernel ran."),
    (
        "utilization.memory",
        "memory_busy_ratio",
        PERCENT,
        "Share of the time in which the memory was accessed.",
    ),
    ("memory.total", "memory_total_bytes", MIB, "Memory of the card."),
    ("memory.reserved", "memory_reserved_bytes", MIB, "Memory that the driver keeps for itself."),
    ("memory.used", "memory_used_bytes", MIB, "Memory in use."),
    ("power.draw", "power_watts", 1, "Power drawn."),
    ("power.limit", "power_limit_watts", 1, "Power limit that is set."),
    ("clocks.current.graphics", "graphics_clock_hertz", MEGA, "Graphics clock."),
    ("clocks.current.memory", "memory_clock_hertz", MEGA, "Memory clock."),
    ("fan.speed", "fan_ratio", PERCENT, "Speed of the fan, of the highest."),
    ("pcie.link.gen.current", "pcie_generation", 1, "PCIe generation of the link; 1 while idle is usual."),
    ("pcie.link.width.current", "pcie_lanes", 1, "PCIe lanes of the link."),
    ("ecc.errors.corrected.volatile.total", "ecc_corrected_errors_total", 1, "Memory errors mended."),
    ("ecc.errors.uncorrected.volatile.total", "ecc_uncorrected_errors_total", 1, "Memory errors not mended."),
)
#: The newer name first; releases before 535 know the other.
REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
#: Bits of REASONS that hold a card back (nvml.h, nvmlClocksEventReason…).
HOLDING_BACK = {
    "sw_power_cap": 0x4,
    "hw_slowdown": 0x8,
    "sw_thermal_slowdown": 0x20,
    "hw_thermal_slowdown": 0x40,
    "hw_power_brake": 0x80,
}
_XID = re.compile(r"NVRM: Xid \(PCI:([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2})[^)]*\): (\d{1,4})\b")

Row = dict[str, Any]
Labels = dict[str, str]


class Family(NamedTuple):
    """One metric. samples: labels and value of each series."""

    name: str
    help: str
    samples: list[tuple[Labels, float]]

    def text(self) -> str:
        """As Prometheus reads it; empty where there is no series."""
        if not self.samples:
            return ""
        kind = "counter" if self.name.endswith("_total") else "gauge"
        lines = [f"# HELP {self.name} {self.help}", f"# TYPE {self.name} {kind}"]
        for labels, value in self.samples:
            inner = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
            lines.append(
                f"{self.name}{{{inner}}} {float(value)!r}" if inner else f"{self.name} {float(value)!r}"
            )
        return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def of_cards(rows: Sequence[Row], declared_watts: dict[str, float]) -> list[Family]:
    """The metrics of the rows of one call of nvidia-smi. declared_watts: power limit by UUID."""
    cards = [({"gpu": row["index"] or "", "uuid": row["uuid"] or ""}, row) for row in rows]
    found = [
        Family(
            PREFIX + "info",
            "The card and its driver.",
            [
                (
                    {
                        **labels,
                        "name": row["name"] or "",
                        "driver": row["driver_version"] or "",
                        "bus": bus(row["pci.bus_id"] or ""),
                    },
                    1,
                )
                for labels, row in cards
            ],
        )
    ]
    for field, name, factor, words in VALUES:
        told = [(labels, nvidia_smi.number(row.get(field))) for labels, row in cards]
        samples = [(labels, value * factor) for labels, value in told if value is not None]
        found.append(Family(PREFIX + name, words, samples))
    held = [(labels, bits(row)) for labels, row in cards]
    found.append(
        Family(
            PREFIX + "throttled",
            "Whether something holds the card back. sw_power_cap is the power limit, which may be meant.",
            [
                ({**labels, "reason": reason}, float(bool(active & bit)))
                for labels, active in held
                if active is not None
                for reason, bit in HOLDING_BACK.items()
            ],
        )
    )
    watts = [
        (labels, declared_watts[labels["uuid"]]) for labels, _ in cards if labels["uuid"] in declared_watts
    ]
    found.append(Family(PREFIX + "declared_power_limit_watts", "Power limit that is declared.", watts))
    return found


def bits(row: Row) -> int | None:
    """The reasons that are active, None where they are not told."""
    cell = next((row[name] for name in REASONS if row.get(name)), None)
    try:
        return int(cell, 16) if cell else None
    except ValueError:
        return None


def bus(address: str) -> str:
    """A PCI address as the driver's lines in the kernel log have it: no function, four digits of domain."""
    return str(nvidia_smi.bus_address(address)).partition(".")[0]


def xids(log: str) -> Family:
    """The Xid lines of a kernel log, counted by card and number."""
    counts: dict[tuple[str, str], int] = {}
    for match in _XID.finditer(log):
        key = (bus(match.group(1)), str(int(match.group(2))))
        counts[key] = counts.get(key, 0) + 1
    return Family(
        PREFIX + "xid_total",
        "Errors that the driver told since the boot, by Xid.",
        [({"bus": at, "xid": number}, count) for (at, number), count in sorted(counts.items())],
    )


def ask() -> tuple[list[Row], str]:
    """The cards that answer, and what went wrong. A field that a driver does not know is left out."""
    fields = [*IDENTITY, *(one[0] for one in VALUES), REASONS[0]]
    while True:
        words = ["nvidia-smi", "--query-gpu=" + ",".join(fields), "--format=csv,noheader"]
        done = command.run(words, timeout=SMI_TIMEOUT)
        wrong = nvidia_smi.bad_field(done.stdout, done.stderr)
        if wrong not in fields or wrong in IDENTITY:
            break
        fields.remove(wrong)
        if wrong == REASONS[0]:
            fields.append(REASONS[1])
    outcome = nvidia_smi.outcome(done.rc, done.stdout, done.stderr)
    rows = [
        {**dict.fromkeys(IDENTITY), **row} for row in nvidia_smi.query(done.stdout, done.stderr, fields).rows
    ]
    return rows, "" if outcome == "ok" else f"nvidia-smi: {outcome}: {done.text[:500]}"


def present(devices: Path = Path("/sys/bus/pci/devices")) -> int:
    """Cards of NVIDIA's on the PCI bus, whether their driver is loaded or not."""
    count = 0
    for device in devices.glob("*"):
        vendor, kind = (command.read(str(device / part)) or "" for part in ("vendor", "class"))
        count += vendor.strip() == "0x10de" and kind.startswith("0x03")
    return count


def kernel_log() -> str:
    """The driver's lines since the boot; from the kernel's own buffer where the journal has none."""
    words = ["journalctl", "--dmesg", "--boot", "--no-pager", "--quiet", "--output=cat"]
    found = command.run(words, timeout=LOG_TIMEOUT)
    if found.rc == 0 and found.stdout.strip():
        return str(found.stdout)
    return str(command.run(["dmesg"], timeout=LOG_TIMEOUT).stdout)


def drifted(config: Path) -> Family:
    """Files that are not as the last run of a role left them, by the receipts that it kept."""
    samples: list[tuple[Labels, float]] = []
    for path in sorted((config / "receipts").glob("*.json")):
        seen = read_json(path).get("seen")
        if isinstance(seen, dict):
            files = {key[len("file ") :]: was for key, was in seen.items() if key.startswith("file ")}
            count = sum(file_state.state(one) != was for one, was in files.items())
            samples.append(({"role": path.stem}, count))
    return Family("boxwright_drifted_files", "Files of a role that were edited or taken away.", samples)


def declared_watts(config: Path) -> dict[str, float]:
    """Declared power limit by UUID, as the role gpu_tuning keeps it."""
    found: dict[str, float] = {}
    goals = read_json(config / "gpu-tuning.json").get("cards")
    for uuid, goal in goals.items() if isinstance(goals, dict) else ():
        watts = goal.get("power_limit_w") if isinstance(goal, dict) else None
        if isinstance(watts, (int, float)) and not isinstance(watts, bool):
            found[uuid] = float(watts)
    return found


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object; an empty one where there is none to read."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def text(families: Iterable[Family]) -> str:
    """The whole file."""
    return "".join(family.text() for family in families)


def main() -> int:
    """Run the command line; the exit status: 1 where there are cards and none could be asked."""
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    output, config = sys.argv[1], Path(sys.argv[2])
    count = present()
    rows, wrong = ask() if count else ([], "")
    families = [
        *of_cards(rows, declared_watts(config)),
        Family(PREFIX + "present", "Cards on the PCI bus.", [({}, count)]),
        Family(PREFIX + "answered", "Cards that the driver tells of.", [({}, len(rows))]),
        *([xids(kernel_log())] if count else []),
        drifted(config),
        Family("boxwright_collected_timestamp_seconds", "When this was written.", [({}, time.time())]),
    ]
    command.write(output, text(families))
    if wrong:
        print(wrong, file=sys.stderr)
    return 1 if wrong and not rows else 0


if __name__ == "__main__":
    sys.exit(main())
