"""Where this machine keeps what runs leave behind: ends that boxes have not had yet, logs, measurements."""

from __future__ import annotations

import os
from pathlib import Path


def directory(kind: str) -> Path:
    """The directory of one kind, which may not be there. Raises OSError where there is no home."""
    try:
        base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    except RuntimeError as error:
        raise OSError(str(error)) from error
    return base / "boxwright" / kind
