"""Files that a person names, and where a verb may write: looked at before a box is asked.

No name is a fault of ours: one too long, of a user who is not there, behind a loop of links.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from boxwright.errors import EXIT_BAD_INPUT, UserError
from boxwright.texts import printable


def named(word: str) -> Path:
    """The path that a person means, `~` among it; as it stands where there is no such user."""
    try:
        return Path(word).expanduser()
    except RuntimeError:
        return Path(word)


def exists(path: Path) -> bool:
    """Whether it is there, as far as anybody can see."""
    try:
        return path.exists()
    except OSError:
        return False


def is_file(path: Path) -> bool:
    """Whether it is a file, as far as anybody can see."""
    try:
        return path.is_file()
    except OSError:
        return False


def output_file(option: str, path: Path) -> bool:
    """Whether such a file is there already. Raises UserError where none can be written."""
    try:
        if not path.absolute().parent.is_dir():
            raise _refused(option, path, f"there is no directory {path.parent}")
        if not os.access(path.absolute().parent, os.W_OK):
            raise _refused(option, path, f"you may not write in {path.absolute().parent}")
        found = path.stat()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _refused(option, path, error.strerror or str(error)) from error
    if not stat.S_ISREG(found.st_mode):
        raise _refused(option, path, "is a directory" if stat.S_ISDIR(found.st_mode) else "is no plain file")
    return True


def output_directory(option: str, path: Path) -> None:
    """Raises UserError where a directory neither is nor can be made, or nothing can be written in it."""
    try:
        # A link that leads nowhere, or to itself, is there: nothing can be made in its place.
        near = next(one for one in (path.absolute(), *path.absolute().parents) if _is_there(one))
        if not near.is_dir():
            raise _refused(option, path, f"{near} is no directory")
        if not os.access(near, os.W_OK):
            raise _refused(option, path, f"you may not write in {near}")
    except OSError as error:
        raise _refused(option, path, error.strerror or str(error)) from error


def _is_there(path: Path) -> bool:
    """Whether something has this name. Raises OSError for a name that nothing can have."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _refused(option: str, path: Path, why: str) -> UserError:
    return UserError(f"{option} {printable(str(path))}: {printable(why)}", status=EXIT_BAD_INPUT)
