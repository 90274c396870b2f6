"""Frozen dataclasses to plain JSON values and back, by their type hints."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, Union, cast

T = TypeVar("T")


def encode(value: Any) -> Any:
    """A JSON value: dataclasses become objects, tuples arrays, mappings objects with string keys."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    return value


def decode(cls: type[T], data: object) -> T:
    """The dataclass that `encode` made `data` of.

    Missing keys take the field's default and unknown keys are left out, so that a file recorded by an older
    or a newer Boxwright can be read. Raises ValueError, naming the path, where a value has another type.
    """
    return cast("T", _decode(cls, data, cls.__name__))


@cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _decode(hint: Any, data: object, path: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return _decode_union(arguments, data, path)
    if dataclasses.is_dataclass(hint):
        return _decode_dataclass(cast("type", hint), data, path)
    if origin is tuple:
        if not isinstance(data, (list, tuple)):
            raise ValueError(f"{path}: a list is needed, not {data!r}")
        return tuple(_decode(arguments[0], item, f"{path}[{n}]") for n, item in enumerate(data))
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(data, Mapping):
            raise ValueError(f"{path}: an object is needed, not {data!r}")
        return {key: _decode(arguments[1], item, f"{path}.{key}") for key, item in data.items()}
    return _decode_scalar(hint, data, path)


def _decode_union(arguments: tuple[Any, ...], data: object, path: str) -> Any:
    if data is None and type(None) in arguments:
        return None
    errors: list[str] = []
    for option in arguments:
        if option is type(None):
            continue
        try:
            return _decode(option, data, path)
        except ValueError as error:
            errors.append(str(error))
    raise ValueError("; ".join(errors))


def _decode_dataclass(cls: type, data: object, path: str) -> Any:
    if not isinstance(data, Mapping):
        raise ValueError(f"{path}: an object is needed, not {data!r}")
    hints, values = _hints(cls), {}
    for field in dataclasses.fields(cls):
        if field.name in data:
            values[field.name] = _decode(hints[field.name], data[field.name], f"{path}.{field.name}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ValueError(f"{path}.{field.name} is missing")
    return cls(**values)


def _decode_scalar(hint: Any, data: object, path: str) -> Any:
    if hint is Any or hint is object:
        return data
    if hint is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    if not isinstance(data, hint) or (hint in (int, float) and isinstance(data, bool)):
        raise ValueError(f"{path}: {hint.__name__} is needed, not {data!r}")
    return data
