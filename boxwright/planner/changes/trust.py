"""Whom the box trusts beside the distribution's authorities: what preflight would change about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from boxwright.facts.parsers import pem
from boxwright.planner.case import Host
from boxwright.planner.changes.change import Change

ROLE = "preflight"


def changes(host: Host) -> Iterator[Change]:
    """Authorities that are declared and not there, or there and not declared."""
    wanted, kept = pem.fingerprints(host.box.ca or ""), host.facts.kept.authorities
    if set(wanted) != set(kept):
        serves = host.facts.docker.running and any(release.current for release in host.facts.releases)
        yield Change(ROLE, "trusted authorities", _shown(kept), _shown(wanted), interrupts=serves)


def _shown(fingerprints: Sequence[str]) -> str | None:
    """The beginnings of their fingerprints, which is how people tell certificates apart."""
    return ", ".join(f"sha256:{one[:12]}" for one in fingerprints) or None
