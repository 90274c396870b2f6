"""Values of variables that are not what they will be: templates and encrypted strings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Opaque:
    """A value that is known only on the way to the host.

    kind: "template", "vault", or "locked" for a vault that no known password opens. text: of a template.
    """

    kind: str
    text: str = ""

    def __str__(self) -> str:
        return self.text if self.kind == "template" else "!vault …"


def is_opaque(value: object) -> bool:
    """Whether a value, or anything in it, is a template or encrypted."""
    if isinstance(value, dict):
        return any(is_opaque(item) for item in value.values())
    if isinstance(value, list):
        return any(is_opaque(item) for item in value)
    return isinstance(value, Opaque)
