"""Rules about the host's clock."""

from __future__ import annotations

import time
from collections.abc import Sequence

from boxwright.planner.case import Case, Host
from boxwright.planner.rules.registry import Note, host_advice, host_gate, note

SOURCE = "https://wiki.debian.org/NTP"
#: Seconds by which a clock may differ before signatures and certificates do not hold, and before it is told.
WRONG, OFF = 86_400, 120
WAYS_OUT = (
    "on the host: timedatectl set-ntp true, and wait until timedatectl says that it is synchronized",
    "where this machine's clock is the wrong one: set it right",
)


def difference(host: int | None, controller: int | None) -> int:
    """Seconds by which the host's clock is ahead; 0 where either is not known."""
    return 0 if host is None or controller is None else host - controller


def told(host: int, controller: int) -> str:
    """Both clocks, as a person compares them."""
    return f"the host's clock says {_read(host)}, and this machine's {_read(controller)}"


def _read(clock: int) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(clock))
    except (OverflowError, ValueError, OSError):
        return f"{clock} seconds since 1970"


def refusal(host: int, controller: int) -> str:
    """Why nothing is begun with such a clock."""
    return f"{told(host, controller)}: signatures of packages and certificates of servers would not hold"


@host_gate("clock-is-wrong", source=SOURCE)
def clock_is_wrong(host: Host, cases: Sequence[Case]) -> Note | None:
    """A clock that is days or years off makes good signatures and certificates bad.

    apt then calls a repository not valid yet or expired, and every TLS connection ends with a certificate
    that is. A battery on the board that ran out sets the clock back by years at every boot.
    """
    theirs, ours = host.facts.clock.host, host.facts.clock.controller
    if theirs is None or ours is None or abs(difference(theirs, ours)) < WRONG:
        return None
    return note(refusal(theirs, ours), *WAYS_OUT)


@host_advice("clock-is-off", source=SOURCE)
def clock_is_off(host: Host, cases: Sequence[Case]) -> Note | None:
    """A clock that is minutes behind refuses what was signed just now; logs of two machines do not fit."""
    theirs, ours = host.facts.clock.host, host.facts.clock.controller
    if theirs is None or ours is None or not OFF <= abs(difference(theirs, ours)) < WRONG:
        return None
    return note(told(theirs, ours), *WAYS_OUT)
