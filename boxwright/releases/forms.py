"""Options as the catalog's table keeps them, from the calls that added them to a parser."""

from __future__ import annotations

import argparse
import enum
import json
from collections.abc import Iterable, Mapping
from typing import Any

from boxwright.catalog.options import SWITCH
from boxwright.releases.recorder import Added
from boxwright.releases.values import External, FieldInfo, Function, Instance, Unknown, source_of

#: Actions that take no value, and what they are called in the table.
_FLAGS = {"store_true": "store_true", "store_false": "store_false", "help": None}
_PLAIN = (str, int, float, bool, type(None))


class OptionError(Exception):
    """An option whose type, choices or name cannot be told. problems: one text each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def forms(added: Iterable[Added], pairs: Mapping[str, str] | None = None) -> dict[str, dict[str, Any]]:
    """Option (without dashes) -> its form, sorted. Raises OptionError.

    pairs: prefix of a switch -> prefix of its opposite, where the parser has them (`--enable-`).
    """
    found: dict[str, dict[str, Any]] = {}
    problems: list[str] = []
    for one in added:
        try:
            name, form = _form(one, pairs or {})
        except OptionError as error:
            problems += error.problems
            continue
        if name is not None:
            found[name] = form
    if problems:
        raise OptionError(problems)
    return dict(sorted(found.items()))


def _form(added: Added, pairs: Mapping[str, str]) -> tuple[str | None, dict[str, Any]]:
    """A name and a form; no name for what is no option (a positional argument)."""
    strings = [name for name in added.names if isinstance(name, str)]
    if len(strings) != len(added.names):
        raise OptionError([f"an option's name is not known ({added.names!r})"])
    main = next((name for name in strings if name.startswith("--")), None)
    if main is None:
        return None, {}
    given = added.given
    action = given.get("action")
    form: dict[str, Any] = {"type": None, "choices": None, "default": _default(given.get("default"))}
    if isinstance(action, str) and action in _FLAGS:
        form["type"], form["nargs"] = _FLAGS[action], 0
        if action == "store_true" and given.get("default") is None:
            form["default"] = False
    elif _is_switch(action):
        form["type"], form["nargs"] = SWITCH, 0
        strings = _both(strings, pairs)
    elif _is_flag_class(action):
        form["type"], form["nargs"] = "store_true", 0
    else:
        form["type"] = _type(given.get("type"), main)
        form["choices"] = _choices(given.get("choices"), main)
        form["nargs"] = given.get("nargs")
    form["aliases"] = [name for name in strings if name != main] or None
    return main.removeprefix("--"), {key: value for key, value in form.items() if value is not None}


def _is_switch(action: Any) -> bool:
    return action is argparse.BooleanOptionalAction


def _is_flag_class(action: Any) -> bool:
    """Whether it is an action of the package that takes no value (SGLang's deprecated switches)."""
    return source_of(action) is not None and "StoreTrue" in action.__name__


def _both(strings: list[str], pairs: Mapping[str, str]) -> list[str]:
    """A switch's names with those that switch it off."""
    opposites = [
        other + name.removeprefix(prefix)
        for name in strings
        for prefix, other in pairs.items()
        if name.startswith(prefix)
    ]
    if opposites:
        return [*strings, *opposites]
    found: list[str] = []
    for name in strings:
        found.append(name)
        if name.startswith("--"):
            found.append("--no-" + name.removeprefix("--"))
    return found


def _type(value: Any, name: str) -> str | None:
    """A converter's name: `int`, `optional loads`, `json:KernelConfig`."""
    if value is None:
        return None
    if isinstance(value, Function):
        inner = {**value.frame.names, **value.defaults}
        if value.name == "_optional_type":
            return f"optional {_type(_inner(value), name)}"
        if value.name == "_parse_type":
            return _type(_inner(value), name)
        record = inner.get("cls") if value.name == "parse_dataclass" else None
        return f"json:{record.__name__}" if isinstance(record, type) else value.name
    if isinstance(value, External):
        return value.name
    if isinstance(value, Unknown):
        raise OptionError([f"{name}: its type is not known ({value.reason})"])
    found = getattr(value, "__name__", None)
    if not isinstance(found, str):
        raise OptionError([f"{name}: its type is not known ({value!r})"])
    return found


def _inner(function: Function) -> Any:
    """The converter that a converter wraps."""
    return function.frame.names.get("return_type")


def _choices(value: Any, name: str) -> list[Any] | None:
    if value is None:
        return None
    if isinstance(value, (set, frozenset)):
        value = sorted(value, key=str)
    if isinstance(value, dict) or type(value).__name__ == "dict_keys":
        value = list(value)
    if isinstance(value, type) and issubclass(value, enum.Enum):
        value = [one.value for one in value]
    if not isinstance(value, (list, tuple)):
        raise OptionError([f"{name}: its choices are not known ({getattr(value, 'reason', value)!r})"])
    if not value:
        raise OptionError([f"{name}: its choices are made while the package runs, and cannot be read"])
    plain = [one.value if isinstance(one, enum.Enum) else one for one in value]
    if not all(isinstance(one, _PLAIN) for one in plain):
        raise OptionError([f"{name}: some of its choices are not known"])
    return plain


def _default(value: Any) -> Any:
    """A default as JSON can hold it; what is no plain value by its text."""
    if isinstance(value, FieldInfo):
        return _default(value.default)
    if isinstance(value, Instance):
        return repr(value)
    if isinstance(value, (Unknown, External)):
        return None if isinstance(value, External) else "?"
    try:
        json.dumps(value)
    except TypeError:
        return str(value) if isinstance(value, (set, frozenset)) else repr(value)
    return list(value) if isinstance(value, tuple) else value
