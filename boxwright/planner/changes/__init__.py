"""What provisioning would change, as a person would say it; nothing where the host is as declared.

One list for everybody: a plan prints it, and the roles leave alone what it does not name.
"""

from __future__ import annotations

from collections.abc import Sequence

from boxwright.planner.case import Case, Host
from boxwright.planner.changes import access, deployments, drift, driver, runtime, trust, tuning
from boxwright.planner.changes.change import Change

__all__ = ["Change", "changes"]


def changes(host: Host, cases: Sequence[Case]) -> tuple[Change, ...] | None:
    """The differences between declaration and host; None where the host was not asked."""
    if not host.facts.recorded:
        return None
    found = (
        *trust.changes(host),
        *driver.changes(host),
        *runtime.changes(host),
        *tuning.changes(host),
        *(change for case in cases for change in deployments.changes(case)),
        *deployments.gone(host),
        *access.changes(host),
    )
    return (*found, *drift.changes(host, found))
