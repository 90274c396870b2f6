"""What the interpreter has of Python itself: plain functions, methods and types, none of which does I/O."""

from __future__ import annotations

import argparse
import collections.abc
import enum
import itertools
import json
import math
import ssl
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from boxwright.releases.values import MISSING, FieldInfo, Struct

#: Nothing that an option table holds is larger.
MOST_ITEMS = 100_000


def bounded(values: Iterable[Any]) -> list[Any]:
    """The values, unless there are very many. Raises ValueError."""
    found = list(itertools.islice(values, MOST_ITEMS + 1))
    if len(found) > MOST_ITEMS:
        raise ValueError("very many values")
    return found


def numbers(*given: int) -> list[int]:
    """range."""
    return bounded(range(*given))


def permutations(iterable: Any, r: Any = None) -> list[Any]:
    """itertools.permutations, whose second argument may be named."""
    return bounded(itertools.permutations(iterable, r))


def chain(*given: Any) -> list[Any]:
    """itertools.chain."""
    return bounded(itertools.chain(*given))


_FUNCTIONS: tuple[Callable[..., Any], ...] = (
    len, sorted, min, max, sum, any, all, enumerate, zip, reversed, next, iter, abs, round, repr,
)  # fmt: skip
TYPES: tuple[type, ...] = (int, str, float, bool, list, tuple, set, frozenset, dict, bytes, object)
_EXCEPTIONS = (ValueError, TypeError, KeyError, ImportError, AttributeError, RuntimeError, Exception)

#: The names that every module sees without an import.
BUILTINS: Mapping[str, Any] = {
    **{function.__name__: function for function in _FUNCTIONS},
    **{one.__name__: one for one in TYPES},
    **{one.__name__: one for one in _EXCEPTIONS},
    "range": numbers,
    "Ellipsis": ...,
    "NotImplemented": NotImplemented,
}

_TYPING = (
    "Annotated", "Any", "Callable", "ClassVar", "Dict", "Final", "FrozenSet", "Generic", "Iterable", "List",
    "Literal", "Mapping", "NamedTuple", "Optional", "Sequence", "Set", "Tuple", "Type", "TypedDict", "Union",
    "get_args", "get_origin",
)  # fmt: skip


class Enumeration:
    """Stands for enum.Enum among the bases of a class, until its members are known."""


class IntEnumeration(Enumeration, int):
    """Stands for enum.IntEnum."""


class StrEnumeration(Enumeration, str):
    """Stands for enum.StrEnum."""


def cast(kind: object, value: object) -> object:
    """typing.cast."""
    del kind
    return value


def same(value: object) -> object:
    """copy.copy and copy.deepcopy: what is a dictionary is made anew, to its second level."""
    if isinstance(value, dict):
        return {key: same(one) for key, one in value.items()}
    return list(value) if isinstance(value, list) else value


def field(*args: object, **kwargs: Any) -> FieldInfo:
    """dataclasses.field and pydantic.Field."""
    default = args[0] if args else kwargs.get("default", MISSING)
    return FieldInfo(MISSING if default is ... else default, kwargs.get("default_factory"))


def environment(*args: Any, **_: object) -> Any:
    """os.getenv and os.environ.get, in an empty environment."""
    return args[1] if len(args) > 1 else None


def ignored(*_: object) -> None:
    """A call that adds no option on the machines that the engine is read for."""


#: What imports from elsewhere bind; every other name is an External.
EXTERNALS: Mapping[str, Any] = {
    **{
        f"{module}.{name}": getattr(typing, name)
        for module in ("typing", "typing_extensions")
        for name in _TYPING
    },
    **{f"collections.abc.{name}": getattr(collections.abc, name) for name in collections.abc.__all__},
    "typing.cast": cast,
    "typing.TYPE_CHECKING": False,
    "itertools.chain": chain,
    "itertools.permutations": permutations,
    "types.UnionType": types.UnionType,
    "types.SimpleNamespace": types.SimpleNamespace,
    "json.loads": json.loads,
    "json.dumps": json.dumps,
    "math.inf": math.inf,
    "ssl.CERT_NONE": int(ssl.CERT_NONE),
    "argparse.BooleanOptionalAction": argparse.BooleanOptionalAction,
    "argparse.SUPPRESS": argparse.SUPPRESS,
    "copy.copy": same,
    "copy.deepcopy": same,
    "dataclasses.field": field,
    "dataclasses.MISSING": MISSING,
    "msgspec.field": field,
    "msgspec.NODEFAULT": MISSING,
    "msgspec.Struct": Struct,
    "pydantic.Field": field,
    "pydantic.fields.Field": field,
    "pydantic.fields.FieldInfo": FieldInfo,
    "os.getenv": environment,
    "os.environ.get": environment,
    "os.environ": {},
    "sys.argv": [""],
    "sys.modules": {},
    "sys.version_info": (3, 12, 0),
    "enum.auto": enum.auto,
    "enum.Enum": Enumeration,
    "enum.Flag": Enumeration,
    "enum.IntEnum": IntEnumeration,
    "enum.IntFlag": IntEnumeration,
    "enum.StrEnum": StrEnumeration,
}

#: Functions of Python that the interpreter may call. json.loads is only ever named: it reads no option here.
CALLABLE = {
    id(one)
    for one in (
        *_FUNCTIONS, *TYPES, typing.get_args, typing.get_origin, cast, same, field, environment,
        ignored, json.dumps,
        enum.auto, chain, numbers, permutations,
        types.SimpleNamespace,
    )
}  # fmt: skip

METHODS: Mapping[type, frozenset[str]] = {
    str: frozenset(
        [
            "replace",
            "lower",
            "upper",
            "strip",
            "lstrip",
            "rstrip",
            "split",
            "rsplit",
            "join",
            "startswith",
            "endswith",
            "title",
            "partition",
            "rpartition",
            "removeprefix",
            "removesuffix",
            "capitalize",
            "isupper",
        ]
    ),
    dict: frozenset(["items", "keys", "values", "get", "update", "pop", "setdefault", "copy"]),
    list: frozenset(["append", "extend", "insert", "remove", "copy", "index", "count", "sort", "reverse"]),
    set: frozenset(["add", "update", "discard", "remove", "union", "difference", "intersection", "copy"]),
    frozenset: frozenset(["union", "difference", "intersection"]),
    tuple: frozenset(["index", "count"]),
}


def replaced(text: str, old: str, new: str) -> str:
    """str.replace, of what is short enough to stay so. Raises ValueError."""
    if len(text) > 20_000 or len(new) > 2_000:
        raise ValueError("a very long text")
    return text.replace(old, new)


def method(value: object, name: str) -> Any:
    """A method of a plain value that only computes, None for any other."""
    if isinstance(value, str) and name == "replace":
        return partial(replaced, value)
    for kind, names in METHODS.items():
        if isinstance(value, kind) and name in names:
            return getattr(value, name)
    return None


def make_enum(name: str, members: Mapping[str, Any], module: str, bases: tuple[type, ...]) -> type | None:
    """An enumeration with the same members, None where a value is not plain."""
    plain = {
        key: value
        for key, value in members.items()
        if isinstance(value, (str, int, tuple, enum.auto, type(None)))
    }
    if len(plain) != len(members) or not plain:
        return None
    mixed: type | None = int if any(issubclass(base, int) for base in bases) else None
    mixed = str if any(issubclass(base, str) for base in bases) else mixed
    make: Any = enum.IntEnum if mixed is int else enum.Enum
    made: type = make(name, plain, type=str) if mixed is str else make(name, plain)
    made.__module__ = module
    return made
