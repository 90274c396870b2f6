"""What the depot holds: a model hub, models, the engine's image, a package index; kept in the cache."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from boxwright.lab.state import Report
from boxwright.lab.store import engine_image, models, wheels

__all__ = ["StoreTree", "build", "engine_image"]


@dataclass(frozen=True)
class StoreTree:
    """Folders to serve. models: of the hub; wheels: the package index, to be found at /simple/."""

    models: Path
    wheels: Path


def build(cache: Path, report: Report) -> StoreTree:
    """Have the folders in the cache; what is there already is not made again. Raises UserError."""
    with ThreadPoolExecutor(2) as pool:
        made = [pool.submit(part.build, cache, report) for part in (models, wheels)]
        return StoreTree(models=made[0].result(), wheels=made[1].result())
