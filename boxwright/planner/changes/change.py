"""One difference between what is declared and what the host is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from boxwright.texts import printable

#: A switched-on setting, for both ends of a change.
ON, OFF = "on", "off"


@dataclass(frozen=True)
class Change:
    """What one role changes about one subject.

    role: which makes it. subject: what it is about, for a person. was, to: before and after; None is nothing.
    deployment: whose; None for the host. reboot: it needs one. interrupts: what serves now stops for it.
    seconds: about how long that takes, None where nothing stops or nobody can say. note: what else to know.
    """

    role: str
    subject: str
    was: str | None
    to: str | None
    deployment: str | None = None
    reboot: bool = False
    interrupts: bool = False
    seconds: int | None = None
    note: str = ""

    @property
    def text(self) -> str:
        """`driver 570.195.03 -> branch 580, reboot`."""
        owner = f"{self.deployment}: " if self.deployment else ""
        parts = [f"{owner}{self.subject} {self.was or 'none'} -> {self.to or 'none'}"]
        if self.note:
            parts.append(self.note)
        if self.reboot:
            parts.append("reboot")
        elif self.interrupts:
            parts.append(
                f"{_about(self.seconds)} without service" if self.seconds else "service stops for it"
            )
        return printable(", ".join(parts))

    def to_json(self) -> dict[str, Any]:
        """Plain values by stable keys."""
        return {
            "role": self.role,
            "deployment": self.deployment,
            "subject": self.subject,
            "from": self.was,
            "to": self.to,
            "needs_reboot": self.reboot,
            "interrupts_service": self.interrupts or self.reboot,
            "seconds": self.seconds,
            "text": self.text,
        }


def _about(seconds: int) -> str:
    return f"about {round(seconds / 60)} min" if seconds >= 90 else f"about {seconds} s"
