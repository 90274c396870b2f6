"""Texts that quantizing is calibrated with: files of this machine that an inventory names."""

from __future__ import annotations

import stat
from pathlib import Path

#: Bytes at most: a text goes to the box whole, and some hundred kilobytes are all that is read of it.
MOST = 16_000_000
#: Letters at least: the tenth that is kept back to judge a result by has to have some sentences.
LEAST = 2_000
ALLOWED = f"a text of some pages (UTF-8, {LEAST:,} letters to {MOST // 1_000_000} MB), by its whole path"


class CalibrationError(Exception):
    """A text that cannot be taken; says why, as the end of a sentence about its path."""


def read(path: str) -> str:
    """The text at a path, which is absolute. Raises CalibrationError."""
    if not Path(path).is_absolute():
        raise CalibrationError("is no whole path, so nothing says where it begins")
    try:
        found = Path(path).stat()
        if not stat.S_ISREG(found.st_mode):
            raise CalibrationError("is no file")
        if found.st_size > MOST:
            raise CalibrationError(f"has {found.st_size / 1e6:,.0f} MB")
        text = Path(path).read_bytes().decode("utf-8")
    except FileNotFoundError as error:
        raise CalibrationError("is not on this machine") from error
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "it is no text in UTF-8"
        raise CalibrationError(f"cannot be read: {why}") from error
    if "\0" in text:
        raise CalibrationError("is no text: it has zero bytes")
    letters = len("".join(text.split()))
    if letters < LEAST:
        raise CalibrationError(f"has only {letters:,} letters" if letters else "is empty")
    return text
