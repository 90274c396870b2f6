"""Rules about clocks, power limits, and other places that set them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from boxwright.planner import boot_commands
from boxwright.planner.cards import PlannedCard
from boxwright.planner.case import Case, Host
from boxwright.planner.rules.registry import Note, host_advice, host_gate, note
from boxwright.planner.rules.words import listed, shown
from boxwright.spec.tuning import Limits

POWER = "https://github.com/noonghunna/club-3090/blob/main/docs/HARDWARE.md"
NVIDIA_SMI = "https://docs.nvidia.com/deploy/nvidia-smi/index.html"
#: The architecture of consumer cards that take a memory lock and do not keep it, by compute capability.
IGNORES_MEMORY_LOCK = (12, 0)
#: The variable of each setting that a command elsewhere may make.
VARIABLES = {
    "persistence": "gpu_tuning_persistence",
    "clocks": "gpu_tuning_max_clock_mhz",
    "memory clocks": "gpu_tuning_memory_clock_mhz",
    "power limit": "gpu_tuning_power_limit_w",
}


def _of(host: Host, card: PlannedCard) -> Limits:
    return host.box.tuning.of(card.index, card.card.uuid)


def _variable(host: Host, name: str, card: PlannedCard) -> str:
    return host.box.tuning.variable(name, card.index, card.card.uuid)


def _power_range(card: PlannedCard) -> tuple[float | None, float | None]:
    """Lowest and highest limit: the card's own, else the catalog's; None where neither says a number."""
    power, kind = card.card.power, card.kind
    return (
        _finite(power.min, kind.power_min_w if kind else None),
        _finite(power.max, kind.power_max_w if kind else None),
    )


def _finite(*said: float | None) -> float | None:
    return next((one for one in said if one is not None and math.isfinite(one)), None)


@host_gate("power-limit-out-of-range", source=POWER)
def power_limit(host: Host, cases: Sequence[Case]) -> Iterator[Note]:
    """A card's firmware takes limits from its lowest to its highest: an RTX 5090 none below 400 W.

    nvidia-smi refuses others, in some cases with exit status 0. To draw less, lock the clocks.
    """
    told: set[str] = set()
    for card in host.cards:
        asked, at = _of(host, card).power_limit_w, _variable(host, "power_limit_w", card)
        low, high = _power_range(card)
        if asked is None or at in told or ((low is None or asked >= low) and (high is None or asked <= high)):
            continue
        told.add(at)
        span = (
            f"{low:g} to {high:g} W"
            if low is not None and high is not None
            else f"at least {low:g} W"
            if low is not None
            else f"at most {high:g} W"
        )
        too_low = low is not None and asked < low
        fix = [f"{at}: {low if too_low else high:g}"]
        if too_low:
            fix.append("gpu_tuning_max_clock_mhz: … draws less than the lowest limit")
        yield note(
            f"card {card.index} ({card.title}) takes power limits of {span}; {asked:g} W is declared",
            *fix,
            at=at,
        )


@host_gate("clock-out-of-range", source=NVIDIA_SMI)
def clock(host: Host, cases: Sequence[Case]) -> Iterator[Note]:
    """A clock lock is a range of graphics clocks within what the card's hardware knows."""
    told: set[str] = set()
    for card in host.cards:
        limits = _of(host, card)
        low, high = limits.min_clock_mhz, limits.max_clock_mhz
        lowest, highest = (_variable(host, name, card) for name in ("min_clock_mhz", "max_clock_mhz"))
        most = card.card.clocks.max_graphics or (card.kind.clock_graphics_mhz if card.kind else None)
        if high is None:
            continue
        if low > high and lowest not in told:
            told.add(lowest)
            yield note(
                f"the lowest clock {low} MHz is above the highest, {high} MHz", f"{lowest}: 0", at=lowest
            )
        elif low <= high and most is not None and high > most and highest not in told:
            told.add(highest)
            yield note(
                f"card {card.index} ({card.title}) knows graphics clocks up to {most} MHz; {high} is "
                f"declared",
                f"{highest}: {most} or less",
                at=highest,
            )


@host_gate("memory-clock-out-of-range", source=NVIDIA_SMI)
def memory_clock(host: Host, cases: Sequence[Case]) -> Iterator[Note]:
    """A memory lock is one of the clocks that the card's hardware knows, at most its highest."""
    told: set[str] = set()
    for card in host.cards:
        asked, most = _of(host, card).memory_clock_mhz, card.card.clocks.max_memory
        at = _variable(host, "memory_clock_mhz", card)
        if asked is not None and most is not None and asked > most and at not in told:
            told.add(at)
            yield note(
                f"card {card.index} ({card.title}) knows memory clocks up to {most} MHz; {asked} is declared",
                f"leave {at} out: the memory's clock is then free",
                f"{at}: {most} or less",
                at=at,
            )


@host_advice("memory-clock-locked", source="https://github.com/NVIDIA/open-gpu-kernel-modules/issues/1265")
def memory_locked(host: Host, cases: Sequence[Case]) -> Iterator[Note]:
    """A lock of the memory's clock is not kept by every card, and can cost a third of the speed.

    Consumer cards of Blackwell answer that it was set, and run on at their own clock. On others it drags the
    clock between the memory and the rest of the card down. What is read of weights and cache goes over the
    memory, so that a lower clock slows every token; a lock of the graphics clock saves power at less cost.
    """
    told: set[str] = set()
    for card in host.cards:
        asked, at = _of(host, card).memory_clock_mhz, _variable(host, "memory_clock_mhz", card)
        if asked is None or at in told:
            continue
        told.add(at)
        ignored = card.capability is not None and card.capability[:2] == IGNORES_MEMORY_LOCK
        yield note(
            f"the memory of card {card.index} ({card.title}) is to be held at {asked} MHz: "
            + ("its kind takes that and does not keep it" if ignored else "every token gets slower by it"),
            f"leave {at} out, and lock the graphics clock instead",
            at=at,
        )


@host_gate("tuned-card-not-there", source="boxwright/planner/rules/tuning.py")
def card_not_there(host: Host, cases: Sequence[Case]) -> Iterator[Note]:
    """Limits of single cards name cards of the box, each once: by its index or by its UUID."""
    indices = {str(card.index): card for card in host.cards}
    uuids = {card.card.uuid: card for card in host.cards if card.card.uuid}
    for key in host.box.tuning.cards:
        at = f"gpu_tuning_cards.{key}"
        known = indices if key.isdigit() else uuids
        if key in known or not known or (not key.isdigit() and len(uuids) < len(host.cards)):
            continue
        there = listed(str(name) for name in known)
        yield note(f"the box has no card {shown(key)}; it has {there}", f"one of {there}", at=at)
    for uuid, card in uuids.items():
        if uuid in host.box.tuning.cards and str(card.index) in host.box.tuning.cards:
            yield note(
                f"card {card.index} has limits by its index and by its UUID {uuid}",
                "one entry for it",
                at=f"gpu_tuning_cards.{card.index}",
            )


@host_advice("tuned-elsewhere", source="https://docs.nvidia.com/deploy/driver-persistence/index.html")
def elsewhere(host: Host, cases: Sequence[Case]) -> Iterator[Note]:
    """A command of rc.local, cron or another unit that sets the cards works against the declaration.

    Which of the two comes last is chance. Lines of rc.local that set what is declared are taken over by
    Boxwright's unit, and a copy of the file is kept; everything else, also the scripts that these places run,
    is left as it is, and told here.
    """
    taken = boot_commands.taken_over(host)
    for command in host.facts.kept.boot_commands:
        if command in taken:
            continue
        variable = VARIABLES.get(command.what)
        declared = variable is not None and boot_commands.covered(host, command)
        fix = ["take it out there"]
        if variable and not declared:
            fix.append(
                f"declare {variable}, and it is taken over"
                if command.movable
                else f"declare {variable} instead"
            )
        yield note(
            f"{command.path}:{command.line} sets the cards as well: {shown(command.text)}"
            + (f" (run by {command.via})" if command.via else "")
            + (f", and {variable} is not declared" if variable and not declared else ""),
            *fix,
        )
