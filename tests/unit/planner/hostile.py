"""Values of any type of Boxwright, as odd as it allows: facts and declarations that nobody would write."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

_ALPHABET = st.characters(min_codepoint=32, max_codepoint=126)

#: Marks a value, so that it is found again wherever it goes.
MARK = "zq7f"
TEXTS = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        [
            "; rm -rf /",
            "$(reboot)",
            "`id`",
            "--api-key=stolen",
            "--host 0.0.0.0",
            "-tp 8",
            "--model",
            "\x00",
            "a\nb",
            "\x1b[31mred\x1b[0m",
            "\r\x08\x07",
            "{{ lookup('pipe','id') }}",
            "'; DROP TABLE",
            "%s%n{0}{x}",
            "../../etc/passwd",
            "\u202e",
            "\u2028",
            "null",
            "true",
            "1e999",
            "NaN",
            "Infinity",
            "",
            " ",
            "é" * 300,
            "a" * 20_000,
            "9" * 5000,
            "\ud800",
            '"',
            "\\",
            "--",
            "-",
            "-1",
            "\u22121",  # a minus sign that is none to a program
            "\uff10",  # a digit that is one to int()
            "²",
            '{"a": 1}',
            "{" * 200,
            "[" * 2000,
            "[1,",
            "auto",
            "yarn",
            "0.0.0.0",
            "570.195.03",
            "580",
            "12.0",
            "8.6.1.2.3",
        ]
    ),
)
INTEGERS = st.one_of(st.integers(-2, 70), st.sampled_from([0, -1, 255, 1 << 31, 1 << 63, 10**30, -(10**30)]))
NUMBERS = st.one_of(st.floats(), INTEGERS, st.sampled_from([float("nan"), float("inf"), float("-inf"), -0.0]))
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(TEXTS, INTEGERS, st.booleans(), st.none(), st.floats()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(TEXTS, inner, max_size=3),
    ),
    max_leaves=6,
)


def of(kind: Any, fields: Mapping[tuple[type, str], st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    """Values of a type. fields: what a field gets instead, where just anything would say nothing."""
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        hints = typing.get_type_hints(kind)
        return st.builds(
            kind,
            **{
                field.name: _field(kind, field.name, hints[field.name], fields)
                for field in dataclasses.fields(kind)
            },
        )
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return st.one_of(*(of(one, fields) for one in arguments))
    if origin is tuple:
        return st.lists(of(arguments[0], fields), max_size=3).map(tuple)
    if origin is not None and issubclass(origin, Mapping):
        return st.dictionaries(TEXTS, of(arguments[1], fields), max_size=3)
    plain = {str: TEXTS, int: INTEGERS, float: NUMBERS, bool: st.booleans(), type(None): st.none()}
    return plain.get(kind, VALUES)


def _field(
    kind: type, name: str, hint: Any, fields: Mapping[tuple[type, str], st.SearchStrategy[Any]]
) -> st.SearchStrategy[Any]:
    return fields[kind, name] if (kind, name) in fields else of(hint, fields)


def of_schema(
    schema: Mapping[str, Any], usual: Mapping[str, st.SearchStrategy[Any]], odds: int = 40, name: str = ""
) -> st.SearchStrategy[Any]:
    """Values of a JSON schema, of which one in `odds` is anything at all.

    usual: property -> values that are right for it where the schema alone would seldom make one.
    """
    right = usual[name] if name in usual else _right(schema, usual, odds)
    return st.integers(1, odds).flatmap(lambda draw: VALUES if draw == odds else right)


def _right(
    schema: Mapping[str, Any], usual: Mapping[str, st.SearchStrategy[Any]], odds: int
) -> st.SearchStrategy[Any]:
    if "anyOf" in schema and "type" not in schema:
        return st.one_of(*(of_schema(one, usual, odds) for one in schema["anyOf"]))
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kinds = schema.get("type", "string")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    return st.one_of(*(_of_kind(kind, schema, usual, odds) for kind in kinds))


def _of_kind(
    kind: str, schema: Mapping[str, Any], usual: Mapping[str, st.SearchStrategy[Any]], odds: int
) -> st.SearchStrategy[Any]:
    if kind == "object":
        known = schema.get("properties", {})
        inner = {name: of_schema(one, usual, odds, name) for name, one in known.items()}
        required = {name: inner[name] for name in schema.get("required", ()) if name in known}
        rest = {name: one for name, one in inner.items() if name not in required}
        if not known:
            more = schema.get("additionalProperties")
            values = of_schema(more, usual, odds) if isinstance(more, Mapping) else VALUES
            return st.dictionaries(st.sampled_from(NAMES), values, max_size=4)
        return st.fixed_dictionaries(required, optional=rest)
    if kind == "array":
        return st.lists(of_schema(schema.get("items", {}), usual, odds), min_size=1, max_size=2)
    if "pattern" in schema:
        return st.from_regex(schema["pattern"], fullmatch=True, alphabet=_ALPHABET)
    low, high = schema.get("minimum", 0), schema.get("maximum", 1 << 31)
    return {
        "integer": st.integers(int(low), int(high)),
        "number": st.floats(float(low), float(high), exclude_min=schema.get("exclusiveMinimum") == low),
        "boolean": st.booleans(),
        "null": st.none(),
    }.get(kind, TEXTS)


#: Names of options and variables that the release may have, had, or never had.
NAMES = (
    "enforce-eager",
    "attention-backend",
    "tool-call-parser",
    "hf-overrides",
    "swap_space",
    "enable-mtp",
    "compilation-config.cudagraph_mode",
    "max-model-len",
    "limit-mm-per-prompt",
    "allowed-origins",
    "VLLM_ATTENTION_BACKEND",
    "VLLM_LOGGING_LEVEL",
    "NCCL_P2P_DISABLE",
)
