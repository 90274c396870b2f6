"""What an engine's command is made of, whichever engine it is."""

from __future__ import annotations

from dataclasses import dataclass

from boxwright.catalog import Drafter, ModelEntry, OptionTable
from boxwright.engines.settings import Settings
from boxwright.spec.box import Deployment


@dataclass(frozen=True)
class Request:
    """What a command is made of.

    context: tokens, None to let the engine choose. peer_to_peer: between the cards.
    """

    deployment: Deployment
    settings: Settings
    entry: ModelEntry | None
    drafter: Drafter | None
    table: OptionTable
    context: int | None
    peer_to_peer: bool
