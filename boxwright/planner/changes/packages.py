"""What groups of packages have in common: their source, what left them, and their holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from boxwright.facts.model import HostFacts
from boxwright.planner.changes.change import Change
from boxwright.planner.rules.words import listed


def there(host: HostFacts) -> Mapping[str, str]:
    """The packages of drivers and containers that are installed, with their versions."""
    return {**host.driver.packages, **host.docker.packages}


def source(host: HostFacts, role: str, name: str, url: str, subject: str) -> Iterator[Change]:
    """The package source `name`, whose addresses begin with `url`."""
    uris = host.kept.sources.get(name, ())
    wanted = url.rstrip("/")
    if not any(uri == wanted or uri.startswith(wanted + "/") for uri in uris):
        yield Change(role, subject, " ".join(uris) or None, wanted)


def lost(host: HostFacts, role: str, group: str) -> Iterator[Change]:
    """Packages of the group that a run installed and that are not there any more."""
    for name in host.kept.groups[group].declared if group in host.kept.groups else ():
        if name not in there(host):
            yield Change(role, f"package {name}", None, "installed")


def holds(host: HostFacts, role: str, group: str, subject: str) -> Iterator[Change]:
    """Holds that a run set and that were lifted; all of them where the packages are nobody's yet."""
    record = host.kept.groups.get(group)
    if record is None:
        yield Change(role, f"hold of {subject}", None, "held")
        return
    lifted: Sequence[str] = sorted(
        name for name in record.holds if name not in host.driver.held and name in there(host)
    )
    if lifted:
        yield Change(role, f"hold of {listed(lifted[:3])}", "lifted", "held", note=_more(lifted))


def _more(names: Sequence[str]) -> str:
    return f"and of {len(names) - 3} more" if len(names) > 3 else ""
