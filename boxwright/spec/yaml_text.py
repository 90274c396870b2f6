"""Plain values as YAML on one line, in the style of the inventories that come with Boxwright."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import yaml

_PLAIN = re.compile(r"[A-Za-z0-9/][A-Za-z0-9_./:-]*")


def flow(value: object) -> str:
    """A value as one line of YAML that reads back as the same value: `{model: rtx5090, count: 2}`.

    Mappings, lists, strings, booleans, numbers and None. Raises TypeError for anything else.
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{flow(str(key))}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(flow(item) for item in value) + "]"
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, (bool, int, float)):
        return yaml.safe_dump(value, default_flow_style=True).removesuffix("\n...\n").strip()
    raise TypeError(f"{type(value).__name__} cannot stand in a declaration")


def _text(value: str) -> str:
    """The string without quotes where YAML takes it for a string all the same, else in double quotes."""
    if _PLAIN.fullmatch(value) and not value.endswith(":"):
        try:
            # What YAML 1.2 takes for a number and PyYAML does not (1e3) is quoted, too.
            if yaml.safe_load(value) == value and not _is_number(value):
                return value
        except (yaml.YAMLError, ValueError):
            pass
    # JSON's strings are YAML's, once everything but visible ASCII is an escape.
    return re.sub(r"[^\x20-\x7e]", _escape, json.dumps(value, ensure_ascii=False))


def _escape(found: re.Match[str]) -> str:
    number = ord(found.group())
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True
