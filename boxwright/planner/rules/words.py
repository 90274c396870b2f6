"""Sizes and lists as messages say them."""

from __future__ import annotations

from collections.abc import Iterable

from boxwright.planner.quantizer import Needs, Seconds

GIB = 1 << 30
#: Engines as their makers write them.
ENGINES = {"vllm": "vLLM", "sglang": "SGLang"}


def gib(size: float, digits: int = 1) -> str:
    """Memory: `21.4 GiB`."""
    return f"{size / GIB:.{digits}f} GiB"


def gib_apart(one: float, other: float) -> tuple[str, str]:
    """Two sizes of memory, with as many digits as it takes to tell them apart: `1.94 GiB` and `1.90 GiB`."""
    digits = next((count for count in (1, 2) if gib(one, count) != gib(other, count)), 3)
    return gib(one, digits), gib(other, digits)


def gb(size: float) -> str:
    """Disk, in the units that disks are sold in: `19.2 GB`."""
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.0f} MB"


def span(seconds: Seconds) -> str:
    """A time from and to: `40 to 100 min`, `2 to 5 h`."""
    low, high = seconds
    unit, size = ("h", 3600) if low >= 5400 else ("min", 60)
    first, last = max(1, round(low / size)), max(1, round(high / size))
    return f"{first} to {last} {unit}" if last > first else f"about {first} {unit}"


def effort(needs: Needs) -> str:
    """What quantizing takes: `62.1 GiB of main memory, 30.1 GB of disk and 1 to 3 h on a card`."""
    times = [
        f"{span(time)} on {where}"
        for time, where in ((needs.card, "a card"), (needs.processor, "the processor"))
        if time
    ]
    return listed(
        [
            f"{gib(needs.memory)} of main memory",
            f"{gb(needs.disk)} of disk",
            *[" or ".join(times)] * bool(times),
        ]
    )


def listed(words: Iterable[str]) -> str:
    """`a, b and c`."""
    items = list(words)
    return " and ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)


def shown(value: object, length: int = 60) -> str:
    """A declared value in quotes, on one line, cut when long."""
    text = "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in str(value)
    )
    return f'"{text if len(text) <= length else text[:length] + "…"}"'
