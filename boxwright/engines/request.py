"""What an engine's command is made of, whichever engine it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from boxwright.catalog import Drafter, ModelEntry, OptionTable
from boxwright.engines.settings import Settings
from boxwright.spec.box import Deployment


@dataclass(frozen=True)
class Request:
    """What a command is made of.

    context: tokens, None to let the engine choose. peer_to_peer: between the cards. drain_s: seconds in which
    running requests may finish when the engine is to end.
    """

    deployment: Deployment
    settings: Settings
    entry: ModelEntry | None
    drafter: Drafter | None
    table: OptionTable
    context: int | None
    peer_to_peer: bool
    drain_s: int = 0

    @property
    def reduces_by_copies(self) -> bool:
        """Whether an engine's own all-reduce may be used, which copies from card to card."""
        declared = self.deployment.env.get("NCCL_P2P_DISABLE") == "0"
        return self.settings.tensor_parallel == 1 or self.peer_to_peer or declared

    def variables(self, own: Mapping[str, str]) -> dict[str, str]:
        """The environment: the engine's own variables, those for the cards, and the declared ones."""
        made = dict(own)
        if not self.peer_to_peer and self.settings.tensor_parallel > 1:
            made["NCCL_P2P_DISABLE"] = "1"
        return made | {str(name): str(value) for name, value in self.deployment.env.items()}
