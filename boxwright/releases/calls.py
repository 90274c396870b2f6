"""Calls in a package that is read and not run: its own functions and classes, and plain ones of Python."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from boxwright.releases import attributes, expressions, specials
from boxwright.releases.natives import CALLABLE, Enumeration, method, replaced
from boxwright.releases.recorder import Recorder
from boxwright.releases.values import (
    MISSING,
    Frame,
    Function,
    Instance,
    Raised,
    Return,
    Special,
    Unreadable,
    attribute,
    is_record,
    source_of,
)

if TYPE_CHECKING:
    from boxwright.releases.interpreter import Interpreter


def call(reader: Interpreter, function: Any, given: list[Any], named: Mapping[str, Any], frame: Frame) -> Any:
    """The result of a call. Raises Unreadable."""
    if isinstance(function, Function):
        return follow(reader, function, given, named)
    if isinstance(function, expressions.Bound):
        return function.call(given, named)
    if isinstance(function, Special):
        return specials.call(reader, function, given, named, frame)
    if isinstance(function, type) and source_of(function):
        return _made(reader, function, given, named)
    if callable(function) and (id(function) in CALLABLE or _is_method(function) or _is_enum(function)):
        if isinstance(named.get("key"), Function):
            named = {**named, "key": _callable(reader, named["key"], frame)}
        return function(*given, **named)
    if any(isinstance(one, Recorder) for one in (*given, *named.values())):
        reader.problems.append(f"{expressions.shown(function)} may add options, and cannot be followed")
    raise Unreadable(f"{expressions.shown(function)} is not followed")


def _callable(reader: Interpreter, function: Function, frame: Frame) -> Callable[..., Any]:
    return lambda *given, **named: reader.call(function, list(given), named, frame)


def _made(reader: Interpreter, cls: type, given: list[Any], named: Mapping[str, Any]) -> Any:
    values = dict(named)
    if issubclass(cls, dict):
        return values
    try:
        known = specials.fields(reader, cls)
    except Unreadable:
        known = []
    values.update({field.name: value for field, value in zip(known, given, strict=False)})
    for field in known:
        if field.name not in values and field.default is not MISSING:
            values[field.name] = field.default
    made = Instance(cls, values)
    shown = attribute(cls, "__repr__")
    if shown and isinstance(shown[1], Function) and not is_record(cls):
        made.text = str(
            reader.call(attributes.bound(reader, shown[1], shown[0], made), [], {}, shown[1].frame)
        )
    return made


def follow(reader: Interpreter, function: Function, given: list[Any], named: Mapping[str, Any]) -> Any:
    """What a function of the package gives, statement by statement. Raises Unreadable."""
    names = arguments(function, given, named)
    with reader.deeper(function.name):
        inner = Frame(function.frame.module, names, function.frame, function.frame.owner)
        if isinstance(function.node, ast.Lambda):
            return reader.evaluate(function.node.body, inner)
        try:
            reader.run(function.node.body, inner)
        except Return as done:
            return done.value
        except Raised as error:
            raise Unreadable(str(error)) from error
    return None


def arguments(function: Function, given: list[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """The names that a call binds. Raises Unreadable where they do not fit."""
    if function.bound is not None:
        given = [function.bound, *given]
    spec = function.node.args
    wanted = [one.arg for one in (*spec.posonlyargs, *spec.args)]
    only = [one.arg for one in spec.kwonlyargs]
    bound = dict(function.defaults)
    bound.update(zip(wanted, given, strict=False))
    if spec.vararg:
        bound[spec.vararg.arg] = tuple(given[len(wanted) :])
    elif len(given) > len(wanted):
        raise Unreadable(f"{function.name} gets too many arguments")
    rest = {}
    for key, value in named.items():
        if key in wanted or key in only:
            bound[key] = value
        else:
            rest[key] = value
    if spec.kwarg:
        bound[spec.kwarg.arg] = rest
    missing = [name for name in (*wanted, *only) if name not in bound]
    if missing or (rest and not spec.kwarg):
        raise Unreadable(f"{function.name} is called without {', '.join(missing) or 'fitting names'}")
    return bound


def _is_method(function: Any) -> bool:
    """Whether it is a method of a plain value, which only `attribute` hands out."""
    if isinstance(function, partial):
        return function.func is replaced
    return method(getattr(function, "__self__", None), getattr(function, "__name__", "")) is not None


def _is_enum(function: Any) -> bool:
    return isinstance(function, type(Enumeration)) and hasattr(function, "__members__")
