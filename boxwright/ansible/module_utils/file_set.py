"""A set of files as they are and as they should be: read, written together, shown as a difference."""

from __future__ import annotations

import os
import tempfile
from typing import Callable, Dict, List, Optional

Files = Dict[str, Optional[bytes]]


def read_bytes(path: str) -> Optional[bytes]:
    """A file's bytes, or None where there is none."""
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except (FileNotFoundError, NotADirectoryError):
        return None


def write_all(files: Files) -> None:
    """Make every file hold its bytes, or be gone; files that are right already are left alone."""
    for path, data in files.items():
        if read_bytes(path) == data:
            continue
        if data is None:
            os.unlink(path)
            continue
        directory = os.path.dirname(path)
        os.makedirs(directory, mode=0o755, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=directory, prefix=".boxwright-")
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o644)  # apt reads keyrings as the user _apt
        os.replace(temporary, path)


def difference(before: Files, after: Files, shown: Callable[[str, bytes], str]) -> List[Dict[str, str]]:
    """Ansible's diff of the files that change. shown: a file's bytes for a person, by path."""
    return [
        {
            "before_header": path,
            "after_header": path,
            "before": shown(path, before[path] or b""),
            "after": shown(path, data or b""),
        }
        for path, data in after.items()
        if before[path] != data
    ]
