"""What the cards did while something ran: clocks, power, heat and what held them back."""

from __future__ import annotations

import threading
import time
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from ansible.module_utils import nvidia_smi
from ansible.module_utils.command import run

INTERVAL_S = 0.5
TIMEOUT_S = 15
FIELDS = (
    "index",
    "uuid",
    "clocks.current.graphics",
    "clocks.current.memory",
    "power.draw",
    "temperature.gpu",
    "utilization.gpu",
)
#: The newer name first; releases before 535 know the other.
REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")


class Sample(NamedTuple):
    """One card at one moment. at: of time.monotonic(); reasons: the driver's bits, None where not told."""

    at: float
    card: int
    uuid: Optional[str]
    clock: Optional[int]
    memory_clock: Optional[int]
    power: Optional[float]
    temperature: Optional[int]
    utilization: Optional[int]
    reasons: Optional[int]


def read(rows: Sequence[Dict[str, Optional[str]]], at: float, reasons: str) -> List[Sample]:
    """The rows of one call of nvidia-smi."""
    return [
        Sample(
            at,
            int(row["index"] or 0),
            row["uuid"],
            nvidia_smi.whole(row["clocks.current.graphics"]),
            nvidia_smi.whole(row["clocks.current.memory"]),
            nvidia_smi.number(row["power.draw"]),
            nvidia_smi.whole(row["temperature.gpu"]),
            nvidia_smi.whole(row["utilization.gpu"]),
            _bits(row[reasons]),
        )
        for row in rows
    ]


def _bits(cell: Optional[str]) -> Optional[int]:
    try:
        return int(cell, 16) if cell else None
    except ValueError:
        return None


class Sampler:
    """Reads the cards in the background, inside its `with` block. devices: UUIDs of those that matter."""

    def __init__(self, devices: Sequence[str], interval_s: float = INTERVAL_S) -> None:
        self.samples: List[Sample] = []
        self._devices = set(devices)
        self._interval_s = interval_s
        self._reasons = REASONS[0]
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> "Sampler":
        if self._devices:
            self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._ended.set()
        if self._devices:
            self._thread.join(timeout=TIMEOUT_S + 5)

    def _work(self) -> None:
        while True:
            self.samples += [one for one in self._look() if one.uuid in self._devices]
            if self._ended.wait(self._interval_s):
                return

    def _look(self) -> List[Sample]:
        fields = (*FIELDS, self._reasons)
        before = time.monotonic()
        words = ["nvidia-smi", "--query-gpu=" + ",".join(fields), "--format=csv,noheader"]
        done = run(words, timeout=TIMEOUT_S)
        if nvidia_smi.bad_field(done.stdout, done.stderr) == REASONS[0]:
            self._reasons = REASONS[1]
            return self._look()
        found = nvidia_smi.query(done.stdout, done.stderr, fields)
        return read(found.rows, (before + time.monotonic()) / 2, self._reasons)


def summary(samples: Sequence[Sample], start: float, end: float) -> List[Dict[str, Any]]:
    """Each card over a span of time.

    energy_j: power over the whole span, the line between two readings being straight; None where the card
    tells no power. reasons: bit, as `0x4` -> share of the readings that had it.
    """
    found = []
    for card in sorted({one.card for one in samples}):
        own = sorted((one for one in samples if one.card == card), key=lambda one: one.at)
        inside = [one for one in own if start <= one.at <= end] or [_nearest(own, (start + end) / 2)]
        energy = _energy([(one.at, one.power) for one in own if one.power is not None], start, end)
        known = [one.reasons for one in inside if one.reasons is not None]
        bits = sorted({1 << bit for reasons in known for bit in range(64) if reasons >> bit & 1})
        found.append(
            {
                "index": card,
                "uuid": inside[0].uuid,
                "readings": len(inside),
                "clock_mhz": _span([one.clock for one in inside]),
                "memory_clock_mhz": _span([one.memory_clock for one in inside]),
                "power_w": _span([one.power for one in inside]),
                "temperature_c": _span([one.temperature for one in inside]),
                "utilization": _span([one.utilization for one in inside]),
                "energy_j": energy,
                "reasons": {
                    "0x%x" % bit: round(sum(1 for one in known if one & bit) / len(known), 3) for bit in bits
                }
                if known
                else None,
            }
        )
    return found


def _nearest(samples: Sequence[Sample], at: float) -> Sample:
    return min(samples, key=lambda one: abs(one.at - at))


def _span(values: Sequence[Optional[float]]) -> Optional[Dict[str, float]]:
    known = sorted(value for value in values if value is not None)
    if not known:
        return None
    return {"low": known[0], "median": known[len(known) // 2], "high": known[-1]}


def _energy(readings: Sequence[Any], start: float, end: float) -> Optional[float]:
    """Watts by time, integrated from start to end; before the first reading and after the last as there."""
    if not readings or end <= start:
        return None
    line = [(start, _power(readings, start))]
    line += [one for one in readings if start < one[0] < end]
    line.append((end, _power(readings, end)))
    pairs = [(line[at], line[at + 1]) for at in range(len(line) - 1)]
    return round(sum((later - at) * (power + then) / 2 for (at, power), (later, then) in pairs), 3)


def _power(readings: Sequence[Any], at: float) -> float:
    before = [one for one in readings if one[0] <= at]
    after = [one for one in readings if one[0] > at]
    if not before or not after:
        return float((before or after)[-1 if before else 0][1])
    (left, low), (right, high) = before[-1], after[0]
    return float(low + (high - low) * (at - left) / (right - left))
