"""Who reaches the published ports: what the role engine would change about it."""

from __future__ import annotations

from collections.abc import Iterator

from boxwright.facts.kept import PortAccess
from boxwright.planner.case import Host
from boxwright.planner.changes.change import Change
from boxwright.planner.rules.words import listed

ROLE, SUBJECT = "engine", "sources that reach the published ports"


def changes(host: Host) -> Iterator[Change]:
    """Other sources or ports than declared, or rules that somebody else changed."""
    wanted, kept = _declared(host), host.facts.kept.port_access
    was, to = (listed(one.allow_from) if one else "everybody" for one in (kept, wanted))
    if was != to:
        yield Change(ROLE, SUBJECT, was, to)
    elif kept and wanted and set(kept.ports) != set(wanted.ports):
        yield Change(ROLE, "ports that only declared sources reach", _ports(kept), _ports(wanted))
    elif kept and kept.wrong:
        yield Change(ROLE, "rules of the published ports", "; ".join(kept.wrong), "as declared")


def _declared(host: Host) -> PortAccess | None:
    ports = tuple((one.bind, str(one.port)) for one in host.box.deployments if not one.is_loopback)
    return PortAccess(host.box.allow_from, ports) if host.box.allow_from and ports else None


def _ports(access: PortAccess) -> str:
    return listed(port for _, port in access.ports)
