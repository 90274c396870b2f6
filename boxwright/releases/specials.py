"""Functions whose answer depends on how the interpreter keeps classes: isinstance, fields, getattr …"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from boxwright.releases.natives import TYPES
from boxwright.releases.values import (
    MISSING,
    Field,
    FieldInfo,
    Frame,
    Instance,
    Source,
    Special,
    Unknown,
    Unreadable,
    annotated,
    attribute,
    is_record,
    source_of,
)

if TYPE_CHECKING:
    from boxwright.releases.interpreter import Interpreter


#: Full name -> the function. Those without a dot are builtins.
SPECIALS: Mapping[str, Special] = {
    path: Special(path.rpartition(".")[2])
    for path in (
        "isinstance", "issubclass", "type", "getattr", "hasattr", "setattr", "vars", "callable", "map",
        "super", "globals",
        "dataclasses.fields", "dataclasses.is_dataclass", "typing.get_type_hints", "msgspec.structs.fields",
        "msgspec.defstruct", "inspect.isclass", "typing.is_typeddict", "typing_extensions.is_typeddict",
    )
}  # fmt: skip


def call(
    reader: Interpreter, special: Special, given: list[Any], named: Mapping[str, Any], frame: Frame
) -> Any:
    """The answer. Raises Unreadable where there is none."""
    name = special.name
    if name == "super":
        return Super(frame.owner, frame.names.get("self", frame.names.get("cls")))
    if name == "globals":
        return frame.module.names
    if name == "lazy_module":
        return reader.module(given[2])
    if not given:
        raise Unreadable(f"{name} without arguments")
    value, rest = given[0], given[1:]
    if name in ("isinstance", "issubclass"):
        return _is(value if name == "issubclass" else kind_of(value), rest[0])
    if name in ("getattr", "hasattr"):
        return _getattr(reader, name, value, rest)
    if name == "setattr":
        return reader.set_attribute(value, rest[0], rest[1])
    if name == "map":
        return [reader.call(value, [one], {}, frame) for one in rest[0]]
    if name == "defstruct":
        return _defstruct(value, rest[0], named.get("namespace", {}), frame)
    simple: Mapping[str, Callable[[Any], Any]] = {
        "type": kind_of,
        "vars": lambda one: one.names if (one := source_of(one)) else {},
        "callable": callable,
        "is_typeddict": lambda one: False,
        "isclass": lambda one: isinstance(one, type),
        "is_dataclass": lambda one: is_record(one.cls if isinstance(one, Instance) else one),
        "fields": lambda one: fields(reader, one),
        "get_type_hints": lambda one: {field.name: field.type for field in fields(reader, one)},
    }
    return simple[name](value)


@dataclass(frozen=True)
class Super:
    """What super() stands for: the bases of a class, for the object or class that a method was called on."""

    owner: type | None
    bound: Any


def kind_of(value: Any) -> Any:
    """type(value)."""
    return value.cls if isinstance(value, Instance) else type(value)


def _is(kind: Any, classes: Any) -> bool:
    wanted = tuple(
        type if one == SPECIALS["type"] else one
        for one in (classes if isinstance(classes, tuple) else (classes,))
    )
    return isinstance(kind, type) and any(
        isinstance(one, type) and (one in kind.__mro__ or (one in TYPES and issubclass(kind, one)))
        for one in wanted
    )


def _getattr(reader: Interpreter, name: str, value: Any, rest: list[Any]) -> Any:
    try:
        found = reader.attribute(value, rest[0])
    except Unreadable:
        if name == "getattr" and len(rest) > 1:
            return rest[1]
        if name == "hasattr":
            return False
        raise
    return True if name == "hasattr" else found


def fields(reader: Interpreter, cls: Any) -> list[Field]:
    """The fields of a record class, in order; those of a class only (ClassVar) are none."""
    if isinstance(cls, Instance):
        cls = cls.cls
    if not isinstance(cls, type):
        raise Unreadable(f"{cls!r} has no fields")
    found = []
    for owner, name in annotated(cls):
        source = source_of(owner)
        if source is None:
            continue
        node = source.annotations.get(name)
        if node is not None and "ClassVar" in ast.unparse(node).split("[")[0]:
            continue
        kind = _hint(reader, source, name)
        have = attribute(cls, name)
        default: Any = have[1] if have else MISSING
        factory: Any = MISSING
        if isinstance(default, FieldInfo) and default.default_factory is not None and not _pydantic(source):
            default, factory = MISSING, default.default_factory
        elif isinstance(default, FieldInfo) and not _pydantic(source):
            default = default.default
        found.append(Field(name, kind, default, factory))
    return found


def _hint(reader: Interpreter, source: Source, name: str) -> Any:
    if source.replaced is not None:
        return source.replaced[name]
    try:
        return reader.annotation(source.annotations[name], source.frame)
    except (Unreadable, TypeError, KeyError, SyntaxError) as error:
        return Unknown(f"{source.frame.module.name}: the type of {name}: {error}")


def _pydantic(source: Source) -> bool:
    """Whether its fields keep pydantic's own description as their default."""
    bound = source.frame.module.names.get("Field")
    return bound is not None and "pydantic" in str(bound)


def _defstruct(name: Any, given: Any, namespace: Mapping[str, Any], frame: Frame) -> type:
    from boxwright.releases.values import Struct

    node = ast.ClassDef(name=str(name), bases=[], keywords=[], body=[], decorator_list=[])
    replaced = {one[0]: one[1] for one in given}
    names = {**namespace, **{one[0]: one[2] for one in given if len(one) > 2}}
    source = Source(node, frame, names, {}, (), replaced)
    return type(str(name), (Struct,), {"__module__": frame.module.name, "_source": source})
