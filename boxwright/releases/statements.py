"""Statements of a package that is read and not run."""

from __future__ import annotations

import ast
import typing
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from boxwright.releases import expressions
from boxwright.releases.natives import Enumeration, make_enum
from boxwright.releases.values import (
    Frame,
    Function,
    Import,
    Loop,
    Raised,
    Return,
    Source,
    Unknown,
    Unreadable,
)

if TYPE_CHECKING:
    from boxwright.releases.interpreter import Interpreter

_WITHOUT_EFFECT = (ast.Pass, ast.Assert, ast.Global, ast.Nonlocal)


def follow(reader: Interpreter, node: ast.stmt, frame: Frame) -> None:
    """One statement. Raises Unreadable for one that is not followed (a while loop, a match)."""
    if isinstance(node, _WITHOUT_EFFECT):
        return
    handler = _HANDLERS.get(type(node))
    if handler is None:
        raise Unreadable(f"{type(node).__name__} is not followed")
    handler(reader, node, frame)


def _expr(reader: Interpreter, node: ast.Expr, frame: Frame) -> None:
    if not isinstance(node.value, ast.Constant):
        reader.evaluate(node.value, frame)


def _assign(reader: Interpreter, node: ast.Assign, frame: Frame) -> None:
    value = reader.evaluate(node.value, frame)
    for target in node.targets:
        reader.bind(target, value, frame)


def _annassign(reader: Interpreter, node: ast.AnnAssign, frame: Frame) -> None:
    if node.value is not None:
        reader.bind(node.target, reader.evaluate(node.value, frame), frame)


def _augassign(reader: Interpreter, node: ast.AugAssign, frame: Frame) -> None:
    old = reader.evaluate(expressions.loaded(node.target), frame)
    value = reader.evaluate(node.value, frame)
    if isinstance(old, list) and isinstance(node.op, ast.Add):
        old.extend(value)
        return
    reader.bind(node.target, expressions.operate(node.op, old, value), frame)


def _delete(reader: Interpreter, node: ast.Delete, frame: Frame) -> None:
    for target in node.targets:
        if isinstance(target, ast.Subscript):
            del reader.evaluate(target.value, frame)[reader.evaluate(target.slice, frame)]
        elif isinstance(target, ast.Name):
            frame.names.pop(target.id, None)


def _return(reader: Interpreter, node: ast.Return, frame: Frame) -> None:
    raise Return(reader.evaluate(node.value, frame) if node.value else None)


def _raise(reader: Interpreter, node: ast.Raise, frame: Frame) -> None:
    raise Raised(f"{frame.module.name}:{node.lineno} raises an error")


def _break(reader: Interpreter, node: ast.Break, frame: Frame) -> None:
    raise Loop(goes_on=False)


def _continue(reader: Interpreter, node: ast.Continue, frame: Frame) -> None:
    raise Loop(goes_on=True)


def _if(reader: Interpreter, node: ast.If, frame: Frame) -> None:
    reader.run(node.body if reader.truth(node.test, frame) else node.orelse, frame)


def _for(reader: Interpreter, node: ast.For, frame: Frame) -> None:
    for value in expressions.items(reader.evaluate(node.iter, frame)):
        reader.bind(node.target, value, frame)
        try:
            reader.run(node.body, frame)
        except Loop as loop:
            if not loop.goes_on:
                return
    reader.run(node.orelse, frame)


def _with(reader: Interpreter, node: ast.With, frame: Frame) -> None:
    reader.run(node.body, frame)


def _try(reader: Interpreter, node: ast.Try, frame: Frame) -> None:
    reader.run(node.body, frame)
    reader.run(node.orelse, frame)
    reader.run(node.finalbody, frame)


def _import(reader: Interpreter, node: ast.Import, frame: Frame) -> None:
    for one in node.names:
        path = one.name if one.asname else one.name.split(".")[0]
        frame.names[one.asname or path] = Import(path, None)


def _importfrom(reader: Interpreter, node: ast.ImportFrom, frame: Frame) -> None:
    base = node.module or ""
    if node.level:
        parts = frame.module.name.split(".")
        above = parts[: len(parts) - node.level + (1 if frame.module.is_package else 0)]
        base = ".".join([*above, *([node.module] if node.module else [])])
    for one in node.names:
        if one.name == "*":
            frame.names.update(
                {k: v for k, v in reader.module(base).names.items() if not k.startswith("_")}
                if base.startswith(reader.package)
                else {}
            )
        else:
            frame.names[one.asname or one.name] = Import(base, one.name)


def _functiondef(reader: Interpreter, node: ast.FunctionDef, frame: Frame) -> None:
    kinds = {expressions.last_name(one) for one in node.decorator_list}
    kind = next((one for one in ("staticmethod", "classmethod", "property") if one in kinds), "function")
    frame.names[node.name] = reader.function(node.name, node, frame, kind)


def _asyncfunctiondef(reader: Interpreter, node: ast.AsyncFunctionDef, frame: Frame) -> None:
    frame.names[node.name] = Unknown(f"{node.name} is a coroutine")


def _classdef(reader: Interpreter, node: ast.ClassDef, frame: Frame) -> None:
    inner = Frame(frame.module, {}, frame)
    reader.run(node.body, inner)
    evaluated = [reader.attempt(one, frame) for one in node.bases]
    bases = [typing.get_origin(one) or one for one in evaluated]
    if any(one is Enumeration for base in bases if isinstance(base, type) for one in base.__mro__):
        members = {
            k: v
            for k, v in inner.names.items()
            if not k.startswith("_") and not isinstance(v, (Function, Import))
        }
        made = make_enum(
            node.name, members, frame.module.name, tuple(b for b in bases if isinstance(b, type))
        )
        if made:
            frame.names[node.name] = made
            return
    annotations = {
        one.target.id: one.annotation
        for one in node.body
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    }
    decorators = tuple(expressions.last_name(one) for one in node.decorator_list)
    source = Source(node, frame, inner.names, annotations, decorators)
    parents = tuple(dict.fromkeys(one for one in bases if isinstance(one, type) and one is not object))
    namespace = {"__module__": frame.module.name, "_source": source, "__doc__": ast.get_docstring(node)}
    try:
        frame.names[node.name] = type(node.name, parents, namespace)
    except TypeError:  # bases that Python would not combine, for want of their metaclasses
        frame.names[node.name] = type(node.name, (), namespace)


_HANDLERS: Mapping[type, Callable[[Any, Any, Frame], None]] = {
    ast.Expr: _expr,
    ast.Assign: _assign,
    ast.AnnAssign: _annassign,
    ast.AugAssign: _augassign,
    ast.Delete: _delete,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.If: _if,
    ast.For: _for,
    ast.With: _with,
    ast.Try: _try,
    ast.Import: _import,
    ast.ImportFrom: _importfrom,
    ast.FunctionDef: _functiondef,
    ast.AsyncFunctionDef: _asyncfunctiondef,
    ast.ClassDef: _classdef,
}
