"""One thing done for several boxes at once, each in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

from boxwright.cli import run_logs
from boxwright.cli.interrupts import interrupts
from boxwright.errors import UserError

T = TypeVar("T")


def side_by_side(names: Sequence[str], work: Callable[[str], T]) -> tuple[dict[str, T], dict[str, UserError]]:
    """What came of each box, and of those that failed why. One that fails holds up no other.

    Ctrl-C is raised in every thread, and here once all have come to their end. Any error that is no UserError
    is raised, too. One box alone is worked on in this thread.
    """
    found: dict[str, T] = {}
    missed: dict[str, UserError] = {}
    if len(names) < 2:
        for name in names:
            try:
                found[name] = work(name)
            except UserError as error:
                missed[name] = error
        return found, missed
    # All write to one log: the first of them makes it.
    run_logs.opened()
    stopped = False
    with ThreadPoolExecutor(max_workers=len(names), initializer=interrupts.begin) as pool:
        waiting = {name: pool.submit(work, name) for name in names}
        while True:
            try:
                wait(waiting.values())
                break
            except KeyboardInterrupt:
                stopped = True
                interrupts.stop()
    if stopped:
        raise KeyboardInterrupt
    for name, one in waiting.items():
        _end(name, one, found, missed)
    return found, missed


def _end(name: str, one: Future[T], found: dict[str, T], missed: dict[str, UserError]) -> None:
    try:
        found[name] = one.result()
    except UserError as error:
        missed[name] = error
