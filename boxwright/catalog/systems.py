"""The distributions and releases that the roles are made for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from boxwright.catalog import reading


@dataclass(frozen=True)
class System:
    """A distribution. name: as it calls itself. releases: of Red Hat's family without the minor number."""

    name: str
    releases: tuple[str, ...]


@cache
def load() -> Mapping[str, System]:
    """By the ID of /etc/os-release."""
    data = reading.yaml_file("systems.yml")
    return {name: System(entry["name"], tuple(entry["releases"])) for name, entry in data.items()}
