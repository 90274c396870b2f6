"""The raw answer of the module host_facts, read without trusting its shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple


class Command(NamedTuple):
    """What a program did. rc: 127 not installed, 124 no answer, -1 never run."""

    rc: int
    stdout: str
    stderr: str

    @property
    def text(self) -> str:
        """Both streams."""
        return "\n".join(part.strip() for part in (self.stdout, self.stderr) if part.strip())


@dataclass(frozen=True)
class Raw:
    """One raw answer."""

    values: Mapping[str, Any]

    def get(self, name: str) -> Any:
        """A value as it came, or None."""
        return self.values.get(name)

    def object(self, name: str) -> Mapping[str, Any]:
        """A value that is an object, or an empty one."""
        found = self.values.get(name)
        return found if isinstance(found, Mapping) else {}

    def objects(self, name: str) -> list[Mapping[str, Any]]:
        """The objects of a list."""
        found = self.values.get(name)
        return [one for one in found if isinstance(one, Mapping)] if isinstance(found, (list, tuple)) else []

    def integer(self, name: str) -> int:
        """A whole number, or 0."""
        found = self.values.get(name)
        return found if isinstance(found, int) else 0

    def file(self, name: str) -> str:
        """The text of a file, empty where there is none."""
        return str(self.object("files").get(name) or "")

    def command(self, name: str) -> Command:
        """What a program did."""
        found = self.object("commands").get(name)
        if not isinstance(found, Mapping):
            return Command(-1, "", "")
        rc = found.get("rc")
        return Command(
            rc if isinstance(rc, int) else -1, str(found.get("stdout") or ""), str(found.get("stderr") or "")
        )
