"""Packs what the reading of a release looks at into a small archive of sources, for the tests.

    python tests/unit/releases/pack.py WHEEL tests/unit/releases/data/vllm-0.33.0.tar.gz

Kept are the files that are read, without comments and docstrings, and the bodies of the functions that are
followed. The engines' sources are under the Apache License 2.0; the archive holds their licence lines.
"""

from __future__ import annotations

import ast
import gzip
import io
import sys
import tarfile
import zipfile
from pathlib import Path

from boxwright.cli.releases import READERS
from boxwright.releases import calls
from boxwright.releases.interpreter import Interpreter
from boxwright.releases.values import Function

LICENCE = (
    "# SPDX-License-Identifier: Apache-2.0\n# Reduced from the published package for a test of Boxwright.\n"
)


def used(engine: str, wheel: zipfile.ZipFile) -> dict[str, tuple[str, set[int]]]:
    """The files that are read, with the lines of the functions that are followed."""
    texts: dict[str, str] = {}
    lines: dict[str, set[int]] = {}
    names = set(wheel.namelist())

    def files(path: str) -> str | None:
        if path in names:
            texts[path] = wheel.read(path).decode()
        return texts.get(path)

    followed = calls.follow

    def note(reader: Interpreter, function: Function, given: object, named: object) -> object:
        lines.setdefault(function.frame.module.name, set()).add(function.node.lineno)
        return followed(reader, function, given, named)  # type: ignore[arg-type]

    calls.follow = note  # type: ignore[assignment,method-assign]
    READERS[engine](files)
    return {path: (text, lines.get(_module(path), set())) for path, text in texts.items()}


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


class Reduce(ast.NodeTransformer):
    """Drops docstrings and the bodies of functions that nobody follows."""

    def __init__(self, followed: set[int]) -> None:
        self._followed = followed

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if node.lineno not in self._followed:
            node.body = [ast.Pass()]
            return node
        return self.generic_visit(node)

    visit_AsyncFunctionDef = visit_FunctionDef  # type: ignore[assignment]

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return ast.Pass() if isinstance(node.value, ast.Constant) else node


def main(source: str, target: str) -> None:
    """The command."""
    name = Path(target).name.removesuffix(".tar.gz")
    engine = name.partition("-")[0]
    with zipfile.ZipFile(source) as wheel:
        kept = used(engine, wheel)
        metadata = next(one for one in wheel.namelist() if one.endswith(".dist-info/METADATA"))
        head = wheel.read(metadata).decode().split("\n\n")[0].splitlines()
    files = {
        path: LICENCE + ast.unparse(Reduce(followed).visit(ast.parse(text))) + "\n"
        for path, (text, followed) in kept.items()
    }
    files["PKG-INFO"] = "\n".join(
        line for line in head if line.startswith(("Name", "Version", "Lic", "Requires-D"))
    )
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path, text in sorted(files.items()):
            data = text.encode()
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    Path(target).write_bytes(gzip.compress(packed.getvalue(), 9, mtime=0))


if __name__ == "__main__":
    main(*sys.argv[1:])
