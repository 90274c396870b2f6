"""--query-gpu and --query-compute-apps as CSV."""

from __future__ import annotations

import sys
from typing import Dict, List, Optional, Set, Tuple

from .. import faults, rig, state
from .driver import Driver, Failure, lost_line
from .fields import FIELDS, Field
from .reading import take

#: Fields of --query-compute-apps with their units.
APPS = {
    "timestamp": "",
    "gpu_name": "",
    "gpu_bus_id": "",
    "gpu_serial": "",
    "gpu_uuid": "",
    "pid": "",
    "process_name": "",
    "used_gpu_memory": " MiB",
}
APP_ALIASES = {"name": "process_name", "used_memory": "used_gpu_memory"}


def formats(text: Optional[str]) -> Set[str]:
    """The words of --format. Raises Failure when csv is not among them."""
    words = {word.strip() for word in (text or "").split(",")}
    if "csv" not in words or not words <= {"csv", "noheader", "nounits"}:
        raise Failure(
            2,
            '"--format=" switch is missing. It is required for all the "--query-*" switches.'
            if not text
            else 'Unsupported format "%s"' % text,
        )
    return words


def gpus(driver: Driver, cards: List[rig.Card], names: str, format_: Optional[str]) -> int:
    """Print one row a card. A lost card is told on stderr, and the other rows come nevertheless."""
    words = formats(format_)
    columns = [_field(name.strip()) for name in names.split(",")]
    if "noheader" not in words:
        print(", ".join(_header(field.name, field.unit, words) for field in columns))
    for card in driver.lost:
        print(lost_line(card), file=sys.stderr)
    broken = faults.card("unknown-error", len(driver.rig.cards))
    for card in cards:
        reading = take(card)
        cells = []
        for field in columns:
            value = field.value(card, reading, driver)
            if field.dynamic and card.index == broken:
                value = "[Unknown Error]"
            unit = "" if "nounits" in words or value.startswith("[") or value == "N/A" else field.unit
            cells.append(value + unit)
        print(", ".join(cells))
    return 0


def apps(driver: Driver, cards: List[rig.Card], names: str, format_: Optional[str]) -> int:
    """Print one row a process that computes on a card."""
    words = formats(format_)
    columns = [APP_ALIASES.get(name.strip(), name.strip()) for name in names.split(",")]
    for name in columns:
        if name not in APPS:
            raise Failure(2, 'Field "%s" is not a valid field to query.\n' % name)
    if "noheader" not in words:
        print(", ".join(_header(name, APPS[name], words) for name in columns))
    for card, pid, process, memory in processes(cards):
        values: Dict[str, str] = {
            "timestamp": "",
            "gpu_name": card.name,
            "gpu_bus_id": card.smi_bus_id,
            "gpu_serial": "[N/A]",
            "gpu_uuid": card.uuid,
            "pid": str(pid),
            "process_name": process,
            "used_gpu_memory": str(memory),
        }
        print(", ".join(values[name] + ("" if "nounits" in words else APPS[name]) for name in columns))
    return 0


def processes(cards: List[rig.Card]) -> List[Tuple[rig.Card, int, str, int]]:
    """(card, process id, program, memory in MiB) of the work that was told with `lab-gpu load`."""
    load = state.read()["load"]
    return [
        (card, int(load[card.uuid]["pid"]), str(load[card.uuid]["process"]), int(load[card.uuid]["memory"]))
        for card in cards
        if load.get(card.uuid, {}).get("memory")
    ]


def _field(name: str) -> Field:
    if name not in FIELDS:
        raise Failure(2, 'Field "%s" is not a valid field to query.\n' % name)
    return FIELDS[name]


def _header(name: str, unit: str, words: Set[str]) -> str:
    return name if not unit or "nounits" in words else "%s [%s]" % (name, unit.strip())
