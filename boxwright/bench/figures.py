"""The figures of one repeat: the engine's own result, and what its counters and the cards did meanwhile."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

#: The driver's reasons for lower clocks, by bit (NVML: nvmlClocksEventReasons), worst first.
REASONS = {
    0x80: "power brake",
    0x40: "hardware thermal slowdown",
    0x20: "software thermal slowdown",
    0x8: "hardware slowdown",
    0x4: "software power cap",
    0x10: "sync boost",
    0x2: "application clocks",
    0x100: "display clocks",
    0x1: "idle",
}
#: Those that say nothing about a limit.
HARMLESS = frozenset({"idle"})


@dataclass(frozen=True)
class Figures:
    """One repeat of a point. Rates are tokens a second, times milliseconds; None: not told, or not defined.

    decode: of one sequence, between its first and last token; output: of all sequences together, the whole
    time; prefill: prompt tokens that were not in the prefix cache, over the time to the first token, for
    points that send one request at a time. ttft, itl: medians; itl_p99. acceptance: share of drafted tokens.
    prompt_tokens: of all requests; cached_tokens: of these, from the prefix cache.
    """

    decode: float | None
    output: float | None
    prefill: float | None
    ttft: float | None
    itl: float | None
    itl_p99: float | None
    acceptance: float | None
    tokens_per_joule: float | None
    power: float | None
    clock: float | None
    temperature: float | None
    prompt_tokens: int
    cached_tokens: int | None
    output_tokens: int
    completed: int
    failed: int
    strangers: int
    preemptions: int | None
    throttled: Mapping[str, float]

    def to_json(self) -> dict[str, Any]:
        """Plain values by stable keys, the unit in each."""
        found = {KEYS.get(one.name, one.name): getattr(self, one.name) for one in fields(self)}
        return {**found, "throttled": dict(self.throttled)}


#: How figures are called outside.
KEYS = {
    "decode": "decode_tokens_per_s",
    "output": "output_tokens_per_s",
    "prefill": "prefill_tokens_per_s",
    "ttft": "ttft_ms",
    "itl": "itl_ms",
    "itl_p99": "itl_p99_ms",
    "acceptance": "acceptance",
    "tokens_per_joule": "tokens_per_joule",
    "power": "power_w",
    "clock": "clock_mhz",
    "temperature": "temperature_c",
    "strangers": "tokens_of_others",
}
#: Those that are summed up over repeats and compared between runs, with what is better.
COMPARED = {
    "decode": "more",
    "output": "more",
    "prefill": "more",
    "ttft": "less",
    "itl": "less",
    "acceptance": "more",
    "tokens_per_joule": "more",
}


def figures(repeat: Mapping[str, Any], concurrency: int) -> Figures:
    """The figures of a repeat as a host keeps it."""
    engine, counted = mapping(repeat.get("engine")), mapping(repeat.get("counted"))
    cards = [mapping(card) for card in sequence(repeat.get("cards"))]
    prompt, output = _whole(engine.get("total_input_tokens")), _whole(engine.get("total_output_tokens"))
    cached = number(counted.get("cache_hits"))
    between = number(engine.get("median_tpot_ms"))
    drafted, accepted = number(counted.get("drafted")), number(counted.get("accepted"))
    energies = [number(card.get("energy_j")) for card in cards]
    energy = sum(one for one in energies if one) if energies and None not in energies else None
    generated = number(counted.get("generation_tokens"))
    preempted = number(counted.get("preemptions"))
    return Figures(
        decode=1000 / between if between else None,
        output=number(engine.get("output_throughput")),
        prefill=_prefill(engine, prompt, cached) if concurrency == 1 else None,
        ttft=number(engine.get("median_ttft_ms")),
        itl=number(engine.get("median_itl_ms")),
        itl_p99=number(engine.get("p99_itl_ms")),
        acceptance=accepted / drafted if drafted and accepted is not None else None,
        tokens_per_joule=output / energy if energy else None,
        power=_sum(cards, "power_w"),
        clock=_least(cards, "clock_mhz"),
        temperature=_most(cards, "temperature_c"),
        prompt_tokens=prompt,
        cached_tokens=None if cached is None else int(cached),
        output_tokens=output,
        completed=_whole(engine.get("completed")),
        failed=_whole(engine.get("failed")),
        strangers=max(0, int(generated) - output) if generated is not None else 0,
        preemptions=None if preempted is None else int(preempted),
        throttled=throttled(cards),
    )


def _prefill(engine: Mapping[str, Any], prompt: int, cached: float | None) -> float | None:
    """Tokens a second of reading prompts: those that had to be computed, over the waits for first tokens."""
    waits = [number(one) for one in sequence(engine.get("ttfts"))]
    seconds = sum(one for one in waits if one)
    if not seconds:
        mean = number(engine.get("mean_ttft_ms"))
        seconds = (mean or 0) / 1000 * _whole(engine.get("completed"))
    computed = prompt - (cached or 0)
    return computed / seconds if seconds and computed > 0 else None


def throttled(cards: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """What held the cards back: reason -> the largest share of the readings on any card, worst first."""
    shares: dict[str, float] = {}
    for card in cards:
        for bit, share in mapping(card.get("reasons")).items():
            name = REASONS.get(_bit(bit), f"reason {bit}")
            if name not in HARMLESS:
                shares[name] = max(shares.get(name, 0.0), number(share) or 0.0)
    order = [*REASONS.values()]
    return dict(
        sorted(shares.items(), key=lambda one: order.index(one[0]) if one[0] in order else len(order))
    )


def _bit(text: Any) -> int:
    try:
        return int(str(text), 16)
    except ValueError:
        return 0


def _middles(cards: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    found = [number(mapping(card.get(name)).get("median")) for card in cards]
    return [one for one in found if one is not None]


def _sum(cards: Sequence[Mapping[str, Any]], name: str) -> float | None:
    found = _middles(cards, name)
    return sum(found) if found else None


def _least(cards: Sequence[Mapping[str, Any]], name: str) -> float | None:
    return min(_middles(cards, name), default=None)


def _most(cards: Sequence[Mapping[str, Any]], name: str) -> float | None:
    highs = [number(mapping(card.get(name)).get("high")) for card in cards]
    return max((one for one in highs if one is not None), default=None)


def mapping(value: Any) -> Mapping[str, Any]:
    """A value out of a kept run that is to be an object; an empty one where it is none."""
    return value if isinstance(value, Mapping) else {}


def sequence(value: Any) -> Sequence[Any]:
    """The same for a list."""
    return value if isinstance(value, (list, tuple)) else ()


def number(value: Any) -> float | None:
    """A finite number out of a kept run, or None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if math.isfinite(value) else None


def _whole(value: Any) -> int:
    found = number(value)
    return 0 if found is None else int(found)
