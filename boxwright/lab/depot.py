"""The depot: the container with everything that hosts fetch (packages, wheels, models, images)."""

from __future__ import annotations

ALIAS = "depot.boxwright.lab"
