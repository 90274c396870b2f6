"""What one card shows at this moment."""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple

from .. import faults, rig, state

#: Part of the highest clock that a card holds under load, unlimited (2,805 of 3,165 MHz recorded).
SUSTAINED = 0.89
#: Memory that the driver itself has in use on an idle card, in MiB.
DRIVER_MEMORY = 2


class Reading(NamedTuple):
    """Clocks in MHz, power in W, memory in MiB, temperature in °C, utilization in percent."""

    busy: bool
    persistence: bool
    graphics: int
    memory_clock: int
    power: float
    power_limit: float
    temperature: int
    used: int
    free: int
    utilization: int
    pstate: str
    link_generation: int
    reasons: int
    locked: Optional[Tuple[int, int]]


def take(card: rig.Card) -> Reading:
    """Read a card: its settings, and the work that it was told to do (`lab-gpu load`)."""
    now = state.read()
    settings = now["cards"].get(card.uuid, {})
    work = now["load"].get(card.uuid, {})
    busy, used = bool(work.get("busy")), DRIVER_MEMORY + int(work.get("memory", 0))
    limit = float(settings.get("power_limit") or card.power_default)
    lock = None if faults.active("clocks-ignored") else settings.get("clocks")
    graphics = int(card.clock_graphics_max * SUSTAINED) if busy else card.idle.graphics
    if lock:
        # A lower bound keeps an idle card up too; an upper bound is felt only under load.
        graphics = min(max(graphics, lock[0]), lock[1])
    memory_clock = card.clock_memory_load if busy else card.idle.memory
    return Reading(
        busy=busy,
        persistence=bool(settings.get("persistence")),
        graphics=graphics,
        memory_clock=memory_clock,
        power=round(min(limit, card.power_default * 0.86), 2) if busy else card.idle.power,
        power_limit=limit,
        temperature=card.idle.temperature + (29 if busy else 0),
        used=used,
        free=card.memory_total - card.memory_reserved - used,
        utilization=98 if busy else 0,
        pstate="P2" if busy else "P8",
        link_generation=card.pcie_generation if busy else 1,
        reasons=0x4 if busy and limit < card.power_default * 0.86 else 0 if busy else 1,
        locked=tuple(settings["clocks"]) if settings.get("clocks") else None,
    )
