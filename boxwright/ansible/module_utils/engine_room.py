"""Room on the cards for an engine that is about to start: waited for, or told who holds it."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from ansible.module_utils.command import run
from ansible.module_utils.nvidia_smi import outcome, query, whole

MIB = 1 << 20
#: Seconds for the memory of an engine that has ended to be free again; a driver takes some.
FREE_TIMEOUT_S = 60
POLL_S = 1.0
#: What a card may lack of what is wanted without the engine noticing, in MiB.
SLACK_MIB = 64
CARD_FIELDS = ["index", "uuid", "memory.total", "memory.used", "memory.free"]
APP_FIELDS = ["gpu_uuid", "pid", "used_gpu_memory", "process_name"]


class Lack(NamedTuple):
    """A card without enough memory, in MiB."""

    card: int
    uuid: str
    free: int
    wanted: int


def wanted(plan: Dict[str, Any]) -> Dict[int, int]:
    """Card -> bytes that the engine must find free on it, as its plan says."""
    cards = (plan.get("memory") or {}).get("cards") or []
    return {int(card["index"]): int(card["wanted_bytes"]) for card in cards if card.get("wanted_bytes")}


def lacking(wants: Dict[int, int]) -> List[Lack]:
    """The cards that have not enough free memory now; none where the cards do not tell."""
    rows = _rows("--query-gpu", CARD_FIELDS)
    found = []
    for row in rows:
        index, free = whole(row["index"]), whole(row["memory.free"])
        if index is None or free is None or index not in wants:
            continue
        need = wants[index] // MIB
        if free + SLACK_MIB < need:
            found.append(Lack(index, row["uuid"] or "", free, need))
    return found


def wait(
    wants: Dict[int, int],
    tell: Callable[[str], None],
    timeout_s: float = FREE_TIMEOUT_S,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Optional[str]:
    """Wait until the cards have room; None when they have, else which has not and what holds it."""
    until = clock() + timeout_s
    while True:
        lacks = lacking(wants)
        if not lacks:
            return None
        if clock() >= until:
            return "; ".join(_told(lack) for lack in lacks)
        tell("waiting for memory of card %s" % ", ".join(str(lack.card) for lack in lacks))
        sleep(POLL_S)


def _told(lack: Lack) -> str:
    holders = [
        "%s (process %s, %s MiB)" % (app["process_name"], app["pid"], whole(app["used_gpu_memory"]) or "?")
        for app in _rows("--query-compute-apps", APP_FIELDS)
        if app["gpu_uuid"] == lack.uuid
    ]
    return "card %d has %d MiB free, and the engine takes %d: in use by %s" % (
        lack.card,
        lack.free,
        lack.wanted,
        ", ".join(holders) or "what nvidia-smi does not name (a desktop session, or a process that hangs)",
    )


def _rows(kind: str, fields: List[str]) -> List[Dict[str, Optional[str]]]:
    done = run(["nvidia-smi", "%s=%s" % (kind, ",".join(fields)), "--format=csv,noheader"], timeout=30)
    if outcome(done.rc, done.stdout, done.stderr) != "ok":
        return []
    rows: List[Dict[str, Optional[str]]] = query(done.stdout, done.stderr, fields).rows
    return rows
