"""Whom the box trusts beside the distribution's authorities: what preflight would change about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from boxwright.facts.parsers import pem
from boxwright.planner.case import Host
from boxwright.planner.changes import runtime
from boxwright.planner.changes.change import Change

ROLE = "preflight"


def changes(host: Host) -> Iterator[Change]:
    """Authorities that are declared and not there, or there and not declared."""
    wanted, kept = pem.fingerprints(host.box.ca or ""), host.facts.kept.authorities
    if set(wanted) != set(kept):
        subject, was, to = "trusted authorities", _shown(kept), _shown(wanted)
        # A Docker that runs learns of them by a restart, for which this run has to visit its role.
        yield (
            runtime.restart(host, subject, was, to)
            if host.facts.docker.running
            else Change(ROLE, subject, was, to)
        )


def _shown(fingerprints: Sequence[str]) -> str | None:
    """The beginnings of their fingerprints, which is how people tell certificates apart."""
    return ", ".join(f"sha256:{one[:12]}" for one in fingerprints) or None
