"""A command for an engine: arguments and environment, each value in an argument of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: Where the container has the model's directory, and the draft model's.
MODEL_PATH, DRAFTER_PATH = "/model", "/drafter"
#: Where an engine listens inside of its container.
LISTEN_PORT = 8000


@dataclass(frozen=True)
class OptionProblem:
    """An option, value or variable that the release does not take.

    rule: which kind of problem (a rule's id). path: below the deployment, `extra_args.swap-space`. sure:
    false where the release's own table is not known.
    """

    rule: str
    path: str
    message: str
    fix: tuple[str, ...]
    sure: bool = True


@dataclass(frozen=True)
class Command:
    """What the engine is started with. argv: the program first. problems: what was left out, and why."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[OptionProblem, ...] = ()
