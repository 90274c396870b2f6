"""What a rule found: why a plan cannot work, or what to know of one that can."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One gate that refuses, or one piece of advice.

    id: of the rule (`invoke explain ID`). deployment: its name, None for the host. message: what is wrong and
    why, for a person. fix: ways out, likeliest first. source: where the rule was learned. path: the variable
    it is about, `box_deployments[0].image`.
    """

    id: str
    deployment: str | None
    message: str
    fix: tuple[str, ...]
    source: str
    path: str
