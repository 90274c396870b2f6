"""A plan's memory and speed as a person reads them: bars of the cards, what the cache holds, ranges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from boxwright.cli.console import say, table

GIB, MIB = 1024**3, 1024**2
BAR_CELLS = 88
#: One letter for each use of the memory, so that a bar needs neither colour nor a special font.
MARKS = {
    "driver": "x",
    "weights": "W",
    "drafter": "D",
    "vision tower": "V",
    "activations and graphs": "a",
    "sequence state": "s",
    "KV cache": "K",
    "left free": ".",
}


def gib(size: float) -> str:
    """Bytes as GiB with one decimal, small ones as MiB."""
    return f"{size / GIB:.1f} GiB" if abs(size) >= GIB / 10 else f"{size / MIB:.0f} MiB"


def draw_memory(memory: Mapping[str, Any], context: int | str) -> None:
    """Print a bar for the cards that are alike, each use with its reason, and what fits into the cache."""
    for cards in alike(memory["cards"]):
        say(f"    {heading(cards)}")
        say(f"    [{bar(cards[0]['lines'], cards[0]['card_bytes'])}]")
        table(
            ["   ", "use", "size", "why"],
            [
                [f"    {MARKS.get(line['name'], '?')}", line["name"], gib(line["bytes"]), line["why"]]
                if line["bytes"] >= 0
                else ["     ", "missing", gib(-line["bytes"]), "more than the card has"]
                for line in cards[0]["lines"]
            ],
            right=(2,),
        )
    if memory.get("kv_tokens") is not None:
        draw_cache(memory, context)


def alike(cards: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """The cards in sets of those with one kind, one stage's layers and the same uses."""
    sets: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for card in cards:
        uses = tuple((line["name"], line["bytes"]) for line in card["lines"])
        key = (card["title"], card["card_bytes"], card["layers"], uses)
        sets.setdefault(key, []).append(card)
    return list(sets.values())


def heading(cards: Sequence[Mapping[str, Any]]) -> str:
    """Which cards a bar is of: `cards 0 and 1, RTX 3090, 24.0 GiB each`."""
    first, several = cards[0], len(cards) > 1
    numbers = [str(card["index"]) for card in cards]
    which = f"cards {', '.join(numbers[:-1])} and {numbers[-1]}" if several else f"card {numbers[0]}"
    text = f"{which}, {first['title']}, {gib(first['card_bytes'])}{' each' if several else ''}"
    if first["stages"] > 1:
        own = sorted({card["stage"] + 1 for card in cards})
        text += (
            f": pipeline stage {' and '.join(map(str, own))} of {first['stages']}, {first['layers']} layers"
        )
    return text


def bar(lines: Sequence[Mapping[str, Any]], card: int, cells: int = BAR_CELLS) -> str:
    """The card as so many cells, each use at least one, what is left over to the largest remainders."""
    lines = [line for line in lines if line["bytes"] > 0]  # what is missing is no part of the card
    whole = max(card, sum(line["bytes"] for line in lines))
    if not lines:
        return " " * cells
    exact = [cells * line["bytes"] / whole for line in lines]
    widths = [max(1, int(one)) for one in exact]
    order = sorted(range(len(lines)), key=lambda place: exact[place] - widths[place])
    while sum(widths) < cells:
        widths[order.pop()] += 1
        order = order or sorted(range(len(lines)), key=lambda place: exact[place])
    while sum(widths) > cells:
        widths[max(range(len(lines)), key=lambda place: widths[place])] -= 1
    return "".join(MARKS.get(line["name"], "?") * width for line, width in zip(lines, widths, strict=True))


def draw_cache(memory: Mapping[str, Any], context: int | str) -> None:
    """Print the tokens of the cache, how many sequences of each length stay in it, and the longest."""
    if not memory["kv_tokens"] or memory["kv_tokens"] == {"low": 0, "high": 0}:
        say("    KV cache: nothing is left for it")
        return
    length = f"{context:,}" if isinstance(context, int) else str(context)
    say(
        f"    KV cache: {span(memory['kv_tokens'])} tokens = {span(memory['max_concurrency'])} sequences of "
        f"{length}, in blocks of {memory['kv_block_tokens']:,}"
    )
    table(
        ["    sequences of", *(f"{int(length):,}" for length in memory["resident_sequences"])],
        [["    stay in it", *(span(count) for count in memory["resident_sequences"].values())]],
        right=tuple(range(1, 1 + len(memory["resident_sequences"]))),
    )
    say(f"    largest context that fits: {span(memory['largest_context'])} tokens")


def draw_speed(speed: Mapping[str, Any]) -> None:
    """Print how fast one stream may be answered, by the tokens that its context has, and read."""
    said = speed["decode_tokens_per_s"]
    columns = [("short", said)]
    columns += [
        (f"{one['context_tokens']:,}", one["tokens_per_s"]) for one in speed.get("decode_by_context") or ()
    ]
    table(
        ["    one stream, context", *(name for name, _ in columns)],
        [["    tokens/s", *(rates(found) for _, found in columns)]],
        right=tuple(range(1, 1 + len(columns))),
    )
    if speed.get("prefill_tokens_per_s"):
        say(f"    a prompt is read at {rates(speed['prefill_tokens_per_s'])} tokens/s")


def rates(value: Mapping[str, float]) -> str:
    """A range of tokens a second, whole above ten."""
    low, high = value["low"], value["high"]
    return f"{low:,.0f} to {high:,.0f}" if low >= 10 else f"{low:,.1f} to {high:,.1f}"


def span(value: Any) -> str:
    """A number, or a range as `low to high`."""
    if isinstance(value, Mapping):
        low, high = number(value["low"]), number(value["high"])
        return low if low == high else f"{low} to {high}"
    return number(value)


def number(value: Any) -> str:
    """A number with its thousands apart."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.2f}" if isinstance(value, float) else "?"
