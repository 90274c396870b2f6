"""Values that tell how a host fares, by name, out of what the module diagnosis read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

#: Bits of the driver's reasons for lower clocks (NVML: nvmlClocksEventReasons).
THERMAL, POWER_BRAKE = 0x20 | 0x40, 0x80
#: How the journal of a run ends that was shut down.
_ORDERLY = re.compile(
    r"Journal stopped|systemd-shutdown|Reached target .*(Shutdown|Power-Off|Reboot|Power Off|reboot|poweroff)"
    r"|System is (rebooting|powering down)|Shutting down\."
)
_COUNTERS = {
    "running": ("vllm:num_requests_running", "sglang:num_running_reqs"),
    "waiting": ("vllm:num_requests_waiting", "sglang:num_queue_reqs"),
    "preemptions": ("vllm:num_preemptions_total",),
    "drafted": ("vllm:spec_decode_num_draft_tokens_total",),
    "accepted": ("vllm:spec_decode_num_accepted_tokens_total",),
}
_SHARES = {"kv_usage": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage")}


def of_deployment(raw: Mapping[str, Any]) -> dict[str, Any]:
    """What a deployment's unit, container and counters say. serving is left out while it starts."""
    unit, container = _object(raw, "unit"), _object(raw, "container")
    found: dict[str, Any] = {"restarts": _whole(unit.get("restarts"))}
    if raw.get("health") == 200:
        found["serving"] = True
    elif unit.get("sub") == "auto-restart" or (unit and unit.get("active") in ("failed", "inactive")):
        found["serving"] = False
    if container.get("oom_killed"):
        found["oom_killed"] = True
    found.update(of_metrics(str(raw.get("metrics") or "")))
    return {name: value for name, value in found.items() if value is not None}


def of_metrics(text: str) -> dict[str, Any]:
    """Counters by name: summed over the engine's processes; shares (0 to 1) are the largest of them."""
    values = _values(text)
    found: dict[str, Any] = {}
    for reading, names in _COUNTERS.items():
        known = [number for name in names for number in values.get(name, ())]
        if known:
            found[reading] = int(sum(known))
    for reading, names in _SHARES.items():
        known = [number for name in names for number in values.get(name, ())]
        if known:
            found[reading] = max(known)
    if found.get("drafted"):
        found["acceptance"] = found.get("accepted", 0) / found["drafted"]
    return found


def total(text: str, names: Sequence[str]) -> float | None:
    """The sum of counters over the engine's processes; None where there are none of these names."""
    values = _values(text)
    known = [number for name in names for number in values.get(name, ())]
    return sum(known) if known else None


def _values(text: str) -> dict[str, list[float]]:
    """Prometheus text: name -> its values, one a set of labels."""
    values: dict[str, list[float]] = {}
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        number = finite(value)
        if number is not None:
            values.setdefault(name.partition("{")[0], []).append(number)
    return values


def of_host(raw: Mapping[str, Any]) -> dict[str, Any]:
    """What cards, filesystems, the last boot and Docker's service say."""
    found: dict[str, Any] = {"reboot_required": bool(raw.get("reboot_required"))}
    docker = _object(raw, "docker_unit")
    # Where nothing is deployed nobody waits for it; where it is not there at all the unit's journal says so.
    if _objects(raw, "deployments") and docker.get("down") and docker.get("load") != "not-found":
        found["docker_down"] = True
    shares = [
        free / size
        for one in _objects(raw, "filesystems")
        if (size := finite(one.get("size"))) and (free := finite(one.get("available"))) is not None
    ]
    if shares:
        found["free_share"] = min(shares)
    previous = _object(raw, "previous_boot")
    if previous.get("rc") == 0 and str(previous.get("text") or "").strip():
        found["unclean_reboot"] = not _ORDERLY.search(str(previous["text"]))
    found.update(_of_cards(raw))
    return found


def _of_cards(raw: Mapping[str, Any]) -> dict[str, Any]:
    cards = _objects(raw, "pci")
    answering, reasons = 0, 0
    throttle = _object(raw, "throttle")
    for line in str(throttle.get("text") or "").splitlines():
        row = re.fullmatch(r"\s*(\d{1,3})\s*,\s*(0x[0-9A-Fa-f]{1,16}|\[?[A-Za-z/ ]{1,40}\]?)\s*", line)
        if row:
            answering += 1
            reasons |= int(row.group(2), 16) if row.group(2).startswith("0x") else 0
    found: dict[str, Any] = {"cards": len(cards)} if cards else {}
    if cards and throttle.get("rc") == 0 and answering:
        found["cards_missing"] = max(0, len(cards) - answering)
    if answering:
        found["thermal_slowdown"] = bool(reasons & THERMAL)
        found["power_brake"] = bool(reasons & POWER_BRAKE)
    shares = [
        current / most
        for card in cards
        if (current := _whole(card.get("current_link_width")))
        and (most := _whole(card.get("max_link_width")))
    ]
    if shares:
        found["link_share"] = min(shares)
    return found


def _object(raw: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = raw.get(name)
    return found if isinstance(found, Mapping) else {}


def _objects(raw: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    found = raw.get(name)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, (list, tuple)) else []


def _whole(value: Any) -> int | None:
    found = finite(value) if value is not None else None
    return int(found) if found is not None else None


def finite(value: Any) -> float | None:
    """A finite number out of what a host sent, or None."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        return None
    return found if found == found and abs(found) != float("inf") else None
