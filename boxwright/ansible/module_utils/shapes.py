"""What a module's parameters of mappings and lists must look like; what does not is refused with its place.

Ansible checks that such a parameter is a mapping or a list, and nothing of what is in it.
"""

from __future__ import annotations

import math
from typing import Any, Dict, Iterator, NamedTuple, Tuple


class Kind(NamedTuple):
    """A single value. name: in messages. digits: also a text of digits, as templates give numbers."""

    name: str
    types: Tuple[type, ...]
    empty: bool = False
    digits: bool = False


class ListOf(NamedTuple):
    """A list of values of one shape."""

    one: Any
    empty: bool = False


class MapOf(NamedTuple):
    """A mapping whose keys anybody chooses."""

    one: Any
    empty: bool = False


class Fields(NamedTuple):
    """A mapping with known fields. optional: may be missing; others: further ones may stand there."""

    required: Dict[str, Any]
    optional: Dict[str, Any] = {}
    others: bool = True
    empty: bool = False


class Choice(NamedTuple):
    """A mapping one field of which says which fields there are: value of `key` -> shape."""

    key: str
    of: Dict[str, Fields]
    empty: bool = False


TEXT, TRUTH = Kind("a text", (str,)), Kind("true or false", (bool,))
WHOLE, NUMBER = Kind("a whole number", (int,)), Kind("a number", (int, float))
DIGITS = Kind("a whole number", (int,), digits=True)
#: Whatever JSON has.
ANY = Kind("a value", (object,), True)
_NAMES: Dict[type, str] = {
    dict: "a mapping",
    list: "a list",
    tuple: "a list",
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    type(None): "nothing",
}


def maybe(shape: Any) -> Any:
    """The same shape, or nothing (None) in its place."""
    return shape._replace(empty=True)


def refuse(module: Any, shapes: Dict[str, Any]) -> None:
    """End a module that was given something else, by fail_json; no value is told, for it may be a secret."""
    wrong = [text for name, shape in shapes.items() for text in mistakes(module.params[name], shape, name)]
    if wrong:
        module.fail_json(msg="%s. Nothing was changed" % "; ".join(wrong[:5]))


def mistakes(value: Any, shape: Any, where: str) -> Iterator[str]:
    """What of a value has not its shape."""
    if shape.empty and (value is None or (value == {} and isinstance(shape, Fields))):
        return
    if isinstance(shape, Kind):
        if not _is(value, shape):
            yield "%s is %s, and must be %s" % (where, _name(value), shape.name)
        return
    if isinstance(shape, ListOf):
        if isinstance(value, (list, tuple)):
            for place, one in enumerate(value):
                yield from mistakes(one, shape.one, "%s[%d]" % (where, place))
        else:
            yield "%s is %s, and must be a list" % (where, _name(value))
    elif not isinstance(value, dict):
        yield "%s is %s, and must be a mapping" % (where, _name(value))
    elif isinstance(shape, MapOf):
        for key, one in value.items():
            yield from mistakes(one, shape.one, _below(where, key))
    elif isinstance(shape, Choice):
        chosen = value.get(shape.key)
        if isinstance(chosen, str) and chosen in shape.of:
            yield from _fields(value, shape.of[chosen], where)
        else:
            yield "%s.%s must be %s" % (where, shape.key, " or ".join(sorted(shape.of)))
    else:
        yield from _fields(value, shape, where)


def _fields(value: Dict[str, Any], shape: Fields, where: str) -> Iterator[str]:
    missing = sorted(set(shape.required) - set(value))
    if missing:
        yield "%s has no %s" % (where, " and no ".join(missing))
    known = dict(shape.optional, **shape.required)
    for key, one in value.items():
        if key in known:
            yield from mistakes(one, known[key], _below(where, key))
        elif not shape.others:
            yield "%s: it has %s only" % (_below(where, key), ", ".join(sorted(known)))


def _below(where: str, key: Any) -> str:
    return "%s.%s" % (where, str(key).encode("ascii", "backslashreplace").decode("ascii")[:60])


def _is(value: Any, kind: Kind) -> bool:
    if isinstance(value, bool) and bool not in kind.types:
        return object in kind.types
    if kind.digits and isinstance(value, str):
        return value.isascii() and value.isdigit() and len(value) < 20
    return isinstance(value, kind.types) and not (isinstance(value, float) and not math.isfinite(value))


def _name(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "no number (%r)" % value
    return _NAMES.get(type(value), type(value).__name__)
