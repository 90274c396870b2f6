"""Reading and replacing small files whole."""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any, Optional


def read(path: str) -> Optional[str]:
    """The text of a file, or None where there is none."""
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.read()
    except (FileNotFoundError, NotADirectoryError):
        return None


def read_json(path: str) -> Any:
    """The value in a JSON file, or None where there is no file."""
    text = read(path)
    return None if text is None else json.loads(text)


def write(path: str, text: str, mode: int = 0o644) -> None:
    """Replace the whole file at once and make the directories that lead to it."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(path))
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
    os.chmod(temporary, mode)
    os.replace(temporary, path)


def write_bytes(path: str, content: bytes) -> None:
    """Write a binary file and make the directories that lead to it."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as stream:
        stream.write(content)
