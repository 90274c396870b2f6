"""Which roles a run has to visit, and why.

Those that have something to change, and those whose last run is not to be relied upon. The others are as
declared, which the one trip for the facts has seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from boxwright.facts.kept import Receipt
from boxwright.facts.model import HostFacts
from boxwright.planner.changes.change import Change
from boxwright.planner.changes.drift import ROLES

#: The name under which a receipt knows the role itself.
CODE = "code"
#: Reasons named one by one; more are counted.
MOST_REASONS = 3


def visits(facts: HostFacts, changes: Sequence[Change] | None, *, full: bool) -> dict[str, list[str]] | None:
    """Role -> why it is to be visited; None where the host was not asked. full: all are, in any case."""
    if changes is None or not facts.recorded:
        return None
    receipts = facts.kept.receipts
    found = {role: list(_reasons(role, receipts.get(role), changes, full=full)) for role in ROLES}
    return {role: _few(reasons) for role, reasons in found.items() if reasons}


def _reasons(role: str, receipt: Receipt | None, changes: Sequence[Change], *, full: bool) -> Iterator[str]:
    if full:
        yield "a full visit was asked for"
    if receipt is None:
        yield "no run of it is known to have ended well here"
    else:
        if CODE in receipt.differs:
            yield "Boxwright's role is another version"
        yield from (f"{name} is declared otherwise" for name in receipt.differs if name != CODE)
        yield from (f"{one.what}: {one.was} -> {one.now}" for one in receipt.drift)
    yield from (change.text for change in changes if change.role == role)


def _few(reasons: Sequence[str]) -> list[str]:
    unlike = list(dict.fromkeys(reasons))
    more = len(unlike) - MOST_REASONS
    return [*unlike[:MOST_REASONS], *([f"and {more} more"] if more > 0 else [])]
