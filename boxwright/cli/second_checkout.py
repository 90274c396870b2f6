"""A second checkout with an environment and a lab of its own: two test runs at once need two."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: Variables that say where the first checkout's environment is; its `invoke` finds its own.
OF_THE_FIRST = ("VIRTUAL_ENV", "BOXWRIGHT_ROOT", "ANSIBLE_HOME", "PYTHONPATH")


def tracked(root: Path) -> list[Path] | None:
    """The files of a git checkout that a clone of its present state would have; None where it is none."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
            cwd=root,
            check=False,
            capture_output=True,
            timeout=60,
        )
    except OSError:
        return None
    if listed.returncode:
        return None
    names = [Path(os.fsdecode(name)) for name in listed.stdout.split(b"\0") if name]
    # A file that was deleted and not yet committed is listed still.
    return [name for name in names if (root / name).is_file()]


@contextmanager
def second_checkout(root: Path) -> Iterator[Path | None]:
    """A copy of the checkout, removed afterwards with its lab; None where `root` is no git checkout."""
    files = tracked(root)
    if files is None:
        yield None
        return
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "boxwright" / "checkouts"
    place = base / hashlib.sha256(str(root).encode()).hexdigest()[:6]
    _remove(place)  # of a run that was killed
    place.mkdir(parents=True)
    try:
        for name in files:
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, place / name)
        # A checkout again: what it has is asked of git there, too.
        for words in (["init", "--quiet"], ["add", "--all"]):
            subprocess.run(["git", *words], cwd=place, check=True, capture_output=True, timeout=60)
        yield place
    finally:
        _remove(place)


def environment(programs: str) -> dict[str, str]:
    """What surrounds a command in the second checkout. programs: the first one's directory of programs."""
    path = [part for part in os.environ.get("PATH", "/usr/bin:/bin").split(":") if part != programs]
    kept = {name: value for name, value in os.environ.items() if name not in OF_THE_FIRST}
    return kept | {"PATH": ":".join(path)}


def _remove(place: Path) -> None:
    if (place / ".lab").exists() and (place / ".venv/bin/python").exists():
        subprocess.run(
            [str(place / ".venv/bin/python"), "-m", "boxwright.lab", "down"],
            cwd=place,
            env=environment(""),
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=300,
        )
    if place.exists():
        shutil.rmtree(place)
