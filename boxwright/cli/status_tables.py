"""The tables of the verb status: deployments, their load, and cards; and what no table can say of a box."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from boxwright.cli.console import say, table, wrapped
from boxwright.doctor.glance import TEXT, CardNow, DeploymentNow, Glance

NOTHING = "-"
#: What differs on a box, told one by one; more are counted.
MOST_DRIFTS = 3
#: States in which there is a load to tell.
ANSWERS = ("serving", "drifted")


def draw(found: Mapping[str, tuple[str | None, Glance | None]]) -> None:
    """What each deployment is, what it does, the cards, and below what is to be known of single boxes."""
    boxes = {name: box for name, (_, box) in found.items() if box}
    deployments = [(name, one) for name, box in boxes.items() for one in box.deployments]
    drawn = [
        (
            ["host", "deployment", "state", "release", "model", "context", "up"],
            [row(name, one) for name, one in deployments],
            (5, 6),
        ),
        (
            ["host", "deployment", "running", "waiting", "tokens/s", "KV use", "drafts accepted"],
            [load(name, one) for name, one in deployments if one.state in ANSWERS],
            (2, 3, 4, 5, 6),
        ),
        (
            ["host", "card", "name", "driver", "°C", "W", "of W", "MHz", "MiB", "of MiB", "busy"],
            [card(name, one) for name, box in boxes.items() for one in box.cards],
            (1, 4, 5, 6, 7, 8, 9, 10),
        ),
    ]
    parts = [part for part in drawn if part[1]]
    for number, (headers, rows, right) in enumerate(parts):
        if number:
            say()
        table(headers, rows, right=right)
    notes = [note for name, one in found.items() for note in remarks(name, *one)]
    if notes and parts:
        say()
    for note in notes:
        say(wrapped(note, hang=2))


def row(host: str, one: DeploymentNow) -> list[str]:
    """What a deployment is."""
    return [
        host,
        one.name,
        one.state if one.serves == TEXT else f"{one.state} {one.serves}",
        one.release or NOTHING,
        one.model or NOTHING,
        NOTHING if one.context is None else f"{one.context:,}",
        duration(one.uptime_s),
    ]


def load(host: str, one: DeploymentNow) -> list[str]:
    """What a deployment does."""
    numbers = [NOTHING if number is None else str(number) for number in (one.running, one.waiting)]
    return [
        host,
        one.name,
        *numbers,
        NOTHING if one.tokens_per_s is None else f"{one.tokens_per_s:.1f}",
        share(one.kv_usage),
        share(one.acceptance),
    ]


def card(host: str, one: CardNow) -> list[str]:
    """A card's row."""
    numbers = (
        one.temperature,
        one.power and round(one.power),
        one.power_limit and round(one.power_limit),
        one.clock,
        one.memory_used,
        one.memory_total,
    )
    name = (one.name or NOTHING).removeprefix("NVIDIA ").removeprefix("GeForce ")
    return [
        host,
        str(one.index),
        name,
        one.driver or NOTHING,
        *(NOTHING if number is None else str(number) for number in numbers),
        NOTHING if one.utilization is None else f"{one.utilization} %",
    ]


def remarks(host: str, problem: str | None, one: Glance | None) -> list[str]:
    """What a table cannot say of a box."""
    if one is None:
        return [f"{host}: could not be looked at: {problem}"]
    found = []
    if one.cards_problem:
        found.append(
            f"{host}: its cards do not all answer ({one.cards_problem}); invoke doctor --host {host}"
        )
    for deployment in one.deployments:
        told = f"{host}: {deployment.name}: "
        if deployment.state not in ANSWERS:
            found.append(f"{told}{deployment.state}: {deployment.what or 'its unit does not run'}")
        if deployment.drift:
            words = few(deployment.drift)
            found.append(
                f"{told}drifted from release {deployment.release}: {words}; {mended(host, deployment)}"
            )
        if deployment.trial:
            found.append(f"{told}a run is trying another release in the place of {deployment.release}")
    if one.drifted is None:
        found.append(f"{host}: no whole run of provision is recorded there")
    elif one.drifted:
        found.append(f"{host}: drifted: {few(one.drifted)}; invoke provision --host {host} mends it")
    return found


def mended(host: str, one: DeploymentNow) -> str:
    """What brings a deployment back to its release: a unit that is as it was only has to be started anew."""
    if any(word.startswith("/") for word in one.drift):
        return f"invoke provision --host {host} mends it"
    return f"systemctl restart boxwright-{one.name} there mends it"


def few(words: Sequence[str]) -> str:
    """The first of them; more are counted."""
    more = len(words) - MOST_DRIFTS
    return "; ".join(words[:MOST_DRIFTS]) + (f"; and {more} more" if more > 0 else "")


def share(value: float | None) -> str:
    """A share as a percentage."""
    return NOTHING if value is None else f"{value:.0%}"


def duration(seconds: float | None) -> str:
    """Seconds as `42 s`, `7 min`, `5 h`, `12 d`: the largest unit that has two of itself."""
    if seconds is None:
        return NOTHING
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f} {unit}"
    return f"{seconds:.0f} s"
