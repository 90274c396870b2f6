"""Attributes of what a package that is read and not run holds: modules, classes, objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from boxwright.releases import expressions
from boxwright.releases.natives import method
from boxwright.releases.recorder import Recorder
from boxwright.releases.specials import Super
from boxwright.releases.values import (
    External,
    Frame,
    Function,
    Instance,
    Module,
    Unreadable,
    attribute,
    source_of,
)

if TYPE_CHECKING:
    from boxwright.releases.interpreter import Interpreter


def _of_module(reader: Interpreter, module: Module, name: str) -> Any:
    path = f"{module.name}.{name}"
    if path in reader.overrides:
        return reader.overrides[path]
    if name in module.names:
        return reader.resolved(module.names[name])
    lazy = module.names.get("__getattr__")
    if isinstance(lazy, Function):
        try:
            return reader.call(lazy, [name], {}, Frame(module, module.names))
        except Unreadable:
            return reader.module(path)
    return reader.module(path)


def _of_super(reader: Interpreter, value: Super, name: str) -> Any:
    if value.owner is None:
        raise Unreadable("super() outside of a class")
    for one in value.owner.__mro__[1:]:
        source = source_of(one)
        if source and name in source.names:
            return bound(reader, source.names[name], one, value.bound)
    raise Unreadable(f"no base class has {name}")


def _of_class(reader: Interpreter, cls: type, name: str, holder: Any) -> Any:
    if name in ("__name__", "__doc__", "__module__"):
        return getattr(cls, name)
    if name == "__mro__":
        return cls.__mro__
    source = source_of(cls)
    if name == "__annotations__" and source:
        if source.replaced is not None:
            return source.replaced
        return {key: reader.attempt(one, source.frame) for key, one in source.annotations.items()}
    if name == "__dict__" and source:
        return source.names
    found = attribute(cls, name)
    if found is None:
        raise Unreadable(f"{cls.__name__} has no {name}")
    return bound(reader, reader.resolved(found[1]), found[0], holder)


def bound(reader: Interpreter, value: Any, owner: type, holder: Any) -> Any:
    """A name of a class as its holder has it: a function with its object, a property's value."""
    if not isinstance(value, Function):
        return value
    frame = Frame(value.frame.module, value.frame.names, value.frame.outer, owner)
    if value.kind == "staticmethod":
        return Function(value.name, value.node, frame, value.defaults)
    cls = holder.cls if isinstance(holder, Instance) else holder
    if value.kind == "classmethod":
        return Function(value.name, value.node, frame, value.defaults, bound=cls)
    if not isinstance(holder, Instance):
        return Function(value.name, value.node, frame, value.defaults)
    made = Function(value.name, value.node, frame, value.defaults, bound=holder)
    return reader.call(made, [], {}, frame) if value.kind == "property" else made


def get(reader: Interpreter, value: Any, name: str) -> Any:
    """value.name. Raises Unreadable."""
    if isinstance(value, Module):
        return _of_module(reader, value, name)
    if isinstance(value, External):
        if name in ("__name__", "__module__"):
            return value.name if name == "__name__" else value.path.rpartition(".")[0] or value.path
        return reader.external(f"{value.path}.{name}")
    if isinstance(value, Super):
        return _of_super(reader, value, name)
    if isinstance(value, Instance):
        if name in value.values:
            return value.values[name]
        return _of_class(reader, value.cls, name, value)
    if isinstance(value, type) and source_of(value):
        return _of_class(reader, value, name, value)
    if isinstance(value, Recorder):
        return expressions.Bound(value, name)
    found = method(value, name)
    if found is not None:
        return found
    return expressions.plain_attribute(value, name)


def put(value: Any, name: str, given: Any) -> None:
    """Assign an attribute of a class or an object of the package."""
    source = source_of(value)
    if source and name == "__annotations__" and isinstance(given, dict):
        source.replaced = given
    elif source:
        source.names[name] = given
    elif isinstance(value, Instance):
        value.values[name] = given
