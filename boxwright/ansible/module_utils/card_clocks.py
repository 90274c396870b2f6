"""Whether locked clocks hold: the cards are looked at for a moment, and judged where they have work to do."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from ansible.module_utils import card_answer, nvidia_smi

FIELDS = ("index", "uuid", "name", "utilization.gpu", "clocks.current.graphics", "clocks.current.memory")
#: Looks at the cards, and seconds between them.
LOOKS, PAUSE_S = 4, 0.4
#: From which utilization on, in percent, a card is under load; firmware rounds clocks to a step of 15 MHz.
LOADED, STEP_MHZ = 10, 15


class Seen(NamedTuple):
    """A card at one look. Clocks in MHz, utilization in percent; None where the card does not say."""

    number: int
    uuid: str
    name: str
    utilization: Optional[int]
    graphics: Optional[int]
    memory: Optional[int]


class Verdict(NamedTuple):
    """What was found. broken: locks that do not hold; ignored: locks of the memory; told: for a person."""

    broken: List[str]
    ignored: List[str]
    told: List[str]


def look() -> List[Seen]:
    """The cards now; none where they do not answer."""
    whole = nvidia_smi.whole
    return [
        Seen(
            int(row["index"] or 0),
            row["uuid"] or "",
            row["name"] or "",
            whole(row["utilization.gpu"]),
            whole(row["clocks.current.graphics"]),
            whole(row["clocks.current.memory"]),
        )
        for row in card_answer.ask(FIELDS).rows
    ]


def verdict(
    receipts: Dict[str, Any],
    looking: Callable[[], List[Seen]] = look,
    sleep: Callable[[float], None] = time.sleep,
) -> Verdict:
    """Look until every locked card was seen at work, a few times at most, and judge."""
    locks = {
        uuid: card
        for uuid, card in receipts.get("cards", {}).items()
        if card.get("clocks_mhz") or card.get("memory_clock_mhz")
    }
    seen: Dict[str, List[Seen]] = {uuid: [] for uuid in locks}
    for turn in range(LOOKS if locks else 0):
        if turn:
            sleep(PAUSE_S)
        for one in looking():
            if one.uuid in seen:
                seen[one.uuid].append(one)
        if all(any(map(_works, looks)) for looks in seen.values()):
            break
    return _judge(locks, seen)


def _works(one: Seen) -> bool:
    return one.utilization is not None and one.utilization >= LOADED


def _judge(locks: Dict[str, Any], seen: Dict[str, List[Seen]]) -> Verdict:
    found = Verdict([], [], [])
    for uuid, lock in sorted(locks.items(), key=lambda item: [one.number for one in seen[item[0]][:1]]):
        looks = seen[uuid]
        if not looks:
            found.told.append("%s did not tell its clocks" % uuid)
            continue
        name = "card %d (%s)" % (looks[0].number, looks[0].name)
        work = [one for one in looks if _works(one)]
        clocks, memory = lock.get("clocks_mhz"), lock.get("memory_clock_mhz")
        # An idle card above its lock is not locked either.
        graphics = max((one.graphics for one in looks if one.graphics is not None), default=None)
        fast = max((one.memory for one in work if one.memory is not None), default=None)
        if clocks and graphics is not None and graphics > clocks[1] + STEP_MHZ:
            found.broken.append("%s runs at %d MHz, locked at %d MHz" % (name, graphics, clocks[1]))
        elif clocks and work:
            found.told.append("%s keeps its lock of %d MHz under load (%s MHz)" % (name, clocks[1], graphics))
        if memory and fast is not None and fast > memory + STEP_MHZ:
            found.ignored.append(
                "%s took a memory lock at %d MHz and runs its memory at %d MHz: it does not keep it"
                % (name, memory, fast)
            )
        if not work:
            found.told.append("%s is idle: whether its lock holds shows under load only" % name)
    return found
