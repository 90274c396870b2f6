"""Things that take long to make and are made once: directories in the cache, whole or not there."""

from __future__ import annotations

import ast
import hashlib
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

from boxwright.errors import UserError
from boxwright.lab.state import Report, Stopwatch, locked

#: CPython 3.11 counts the depth of a syntax tree in one place for all threads: two that parse at once may end
#: in "AST constructor recursion depth mismatch" (gh-106905), and what the lab serves is made in threads.
_PARSING = threading.Lock()


def kept(target: Path, report: Report, what: str, make: Callable[[Path], None]) -> Path:
    """The directory `target`, made first where it is missing: `make` fills a directory that is renamed at the
    end.

    what: the thing in words, for the lines that tell about it. Two commands at once make it once. Raises
    UserError when there is no room for it, and what `make` raises.
    """
    if target.is_dir():
        return target
    with locked(target.with_name(f"{target.name}.lock"), report, f"making {what}"):
        if target.is_dir():
            return target
        for left in target.parent.glob(f"{target.name}.*.partial"):  # of a run that was killed
            shutil.rmtree(left)
        temporary = target.with_name(f"{target.name}.{os.getpid()}.partial")
        watch = Stopwatch()
        try:
            temporary.mkdir()
            make(temporary)
            temporary.replace(target)
        except OSError as error:  # most often no room left
            raise UserError(
                f"could not make {what}",
                where=str(error.filename or target),
                why=error.strerror or str(error),
            ) from error
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        report(f"lab: {what} made in {watch}")
    return target


def digest(*parts: str | Path) -> str:
    """Twelve hex digits of a recipe. Paths stand for the files' content, strings for themselves.

    Of Python sources only what they do counts: another comment makes nothing anew.
    """
    total = hashlib.sha256()
    for part in parts:
        content = (
            part.encode()
            if isinstance(part, str)
            else _code(part)
            if part.suffix == ".py"
            else part.read_bytes()
        )
        total.update(f"{len(content)}\n".encode() + content)
    return total.hexdigest()[:12]


def _code(source: Path) -> bytes:
    """A Python source without comments, layout and descriptions."""
    text = source.read_text(encoding="utf-8")
    with _PARSING:
        tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if (
            isinstance(body, list)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
        ):
            del body[0]
    return ast.dump(tree).encode()


def sources(*names: str) -> list[Path]:
    """Source files of this package by name, for `digest`: what is made by them changes with them."""
    return [Path(__file__).with_name(name) for name in names]
