"""From plain values (YAML, JSON, Ansible's variables) to frozen dataclasses, by their type hints.

Nothing is coerced but an int where a float is asked for. Null means "not set"; so does the empty string where
None is allowed, for that is how a default of argument_specs says it. Every mistake is collected; none is
raised.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any

from boxwright.spec.problem import Problem, shown
from boxwright.spec.suggestions import did_you_mean

#: What decoding gives for a value that was wrong (the mistake is in Decoder.problems).
INVALID: Any = object()

#: A field's own way to be read, in its metadata under this key: (decoder, value, path) -> value or INVALID.
READ = "read"
Reader = Callable[["Decoder", object, str], object]

_NAMES = {str: "a string", int: "a whole number", float: "a number", bool: "true or false"}


class Decoder:
    """Reads one host's variables. root_prefix: what stands before the outermost fields' names (`box_`)."""

    def __init__(self, host: str, root_prefix: str = "", problems: list[Problem] | None = None) -> None:
        self.host = host
        self.root_prefix = root_prefix
        self.problems: list[Problem] = [] if problems is None else problems

    def under(self, root_prefix: str) -> Decoder:
        """A decoder for variables of another prefix that collects into the same list."""
        return Decoder(self.host, root_prefix, self.problems)

    def fail(self, path: str, value: object, message: str, allowed: str = "") -> Any:
        """Record a mistake; gives INVALID."""
        text = "" if value is None else shown(value, path)
        self.problems.append(Problem(None, None, self.host, path, text, message, allowed))
        return INVALID

    def structure(self, kind: type, value: object, path: str, **given: object) -> Any:
        """An instance of the dataclass `kind` from a mapping, or INVALID. given: fields that are no keys."""
        if not isinstance(value, Mapping):
            return self.fail(path, value, "must be a mapping", "keys " + ", ".join(_hints(kind)))
        known = {f.name: f for f in fields(kind) if f.name not in given}
        for key in value:
            if key not in known:
                names = [self._join("", name) for name in known] if not path else list(known)
                self.fail(
                    self._join(path, str(key)),
                    value[key],
                    f"is not a key of {path}" if path else "is no variable",
                    did_you_mean(self._join("", str(key)) if not path else str(key), names),
                )
        hints = _hints(kind)
        read = dict(given)
        for name, field in known.items():
            settled = field.default is not MISSING or field.default_factory is not MISSING
            if settled and value.get(name) is None:
                continue
            if name in value:
                read[name] = self._field(field, hints[name], value[name], self._join(path, name))
            else:
                read[name] = self.fail(self._join(path, name), None, "is required and missing")
        return INVALID if any(item is INVALID for item in read.values()) else kind(**read)

    def value(self, hint: Any, value: object, path: str) -> Any:
        """A value of the type `hint`, or INVALID."""
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if origin in (types.UnionType, typing.Union):
            return self._union(arguments, value, path)
        if origin is tuple:
            return self._sequence(arguments[0], value, path)
        if origin is not None and issubclass(origin, Mapping):
            return self._mapping(arguments[1], value, path)
        if is_dataclass(hint) and isinstance(hint, type):
            return self.structure(hint, value, path)
        if hint is object:
            return plain(value)
        return self._scalar(hint, value, path)

    def _field(self, field: Field[Any], hint: Any, value: object, path: str) -> Any:
        reader: Reader | None = field.metadata.get(READ)
        if reader is None:
            return self.value(hint, value, path)
        optional = type(None) in typing.get_args(hint)
        return None if optional and value in (None, "") else reader(self, value, path)

    def _union(self, arguments: Sequence[Any], value: object, path: str) -> Any:
        kinds = [kind for kind in arguments if kind is not type(None)]
        if len(kinds) < len(arguments) and (value is None or (isinstance(value, str) and value == "")):
            return None
        if len(kinds) == 1:
            return self.value(kinds[0], value, path)
        for kind in kinds:
            if _is(kind, value):
                return self.value(kind, value, path)
        return self.fail(path, value, "must be " + " or ".join(_NAMES[kind] for kind in kinds))

    def _sequence(self, kind: Any, value: object, path: str) -> Any:
        if not isinstance(value, (list, tuple)):
            return self.fail(path, value, "must be a list")
        items = [self.value(kind, item, f"{path}[{index}]") for index, item in enumerate(value)]
        return INVALID if any(item is INVALID for item in items) else tuple(items)

    def _mapping(self, kind: Any, value: object, path: str) -> Any:
        if not isinstance(value, Mapping):
            return self.fail(path, value, "must be a mapping")
        items: dict[str, Any] = {}
        for key, item in value.items():
            if not isinstance(key, str):
                items[str(key)] = self.fail(path, key, "has a key that is no string", f'"{key}" in quotes')
            else:
                items[str(key)] = self.value(kind, item, self._join(path, key))
        return INVALID if any(item is INVALID for item in items.values()) else items

    def _scalar(self, kind: Any, value: object, path: str) -> Any:
        if _is(kind, value):
            return kind(value)
        return self.fail(path, value, f"must be {_NAMES[kind]}")

    def _join(self, path: str, name: str) -> str:
        return f"{path}.{name}" if path else f"{self.root_prefix}{name}"


def plain(value: object) -> object:
    """A value without Ansible's tags: plain str, int, float, bool, None, dict and tuple."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return tuple(plain(item) for item in value)
    if value is None or isinstance(value, bool):
        return value
    return next((kind(value) for kind in (int, float, str) if isinstance(value, kind)), str(value))


def _is(kind: Any, value: object) -> bool:
    """Whether a value is of a kind as YAML has it: true is no number, 1.0 is no whole one."""
    if kind is bool or isinstance(value, bool):
        return kind is bool and isinstance(value, bool)
    return isinstance(value, (int, float) if kind is float else kind)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)
