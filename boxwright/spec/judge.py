"""One value against its schema: every mistake, worded for the person who wrote it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from boxwright.spec import networks
from boxwright.spec.suggestions import did_you_mean
from boxwright.spec.values import Opaque
from boxwright.texts import thousands

_KINDS = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "empty",
}
#: A format of our own beside those of JSON Schema.
_NETWORK = "ip-network"
_FORMATS = FormatChecker()
_FORMATS.checks(_NETWORK)(lambda value: not isinstance(value, str) or networks.mistake(value) is None)
_YES_NO = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


@dataclass(frozen=True)
class Mistake:
    """A mistake in a value. steps: where in it; value: the wrong part; allowed: what would be right."""

    steps: tuple[str | int, ...]
    value: object
    message: str
    allowed: str = ""


def mistakes(value: object, schema: Mapping[str, Any]) -> Iterator[Mistake]:
    """Everything in which a value is not as its schema says; templates and encrypted values are skipped."""
    for error in _STRICT(schema, format_checker=_FORMATS).iter_errors(value):
        yield from _worded(error)


def path_text(steps: Sequence[str | int]) -> str:
    """Steps into a value as they are shown: `[0].image`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)


def _worded(error: ValidationError) -> Iterator[Mistake]:
    steps, value = tuple(error.absolute_path), error.instance
    schema: Mapping[str, Any] = error.schema if isinstance(error.schema, Mapping) else {}
    word = _WORDINGS.get(str(error.validator))
    if error.validator == "anyOf":
        branch = _meant(error)
        hint = _other_form(error)
        if hint:
            yield Mistake(steps, value, *hint)
            return
        if branch:
            for inner in branch:
                yield from _worded(inner)
            return
    if word is not None:
        yield from word(steps, value, schema)
    else:
        yield Mistake(steps, value, schema.get("x-message", "is not allowed"), _allowed(schema))


def _other_form(error: ValidationError) -> tuple[str, str] | None:
    """For a number in quotes where a number is an alternative: what it must be, and how to write it."""
    alternatives: Any = error.validator_value
    for alternative in alternatives:
        kind = alternative.get("type")
        if kind in ("integer", "number", "boolean") and (hint := _right_form(kind, error.instance)):
            return f"must be {_KINDS[kind]}", hint
    return None


def _meant(error: ValidationError) -> list[ValidationError]:
    """The mistakes of the alternative whose type the value has; none when it has the type of none."""
    alternatives: Any = error.validator_value
    branches: dict[int, list[ValidationError]] = {}
    for inner in error.context or ():
        branches.setdefault(int(inner.schema_path[0]), []).append(inner)
    for number, found in branches.items():
        wrong_type = any(inner.validator == "type" and not inner.path for inner in found)
        if "type" in alternatives[number] and not wrong_type:
            return found
    return []


def _wrong_type(steps: tuple[str | int, ...], value: object, schema: Mapping[str, Any]) -> Iterator[Mistake]:
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    named = [kind for kind in kinds if kind != "null"]
    if value is None:
        yield Mistake(steps, None, "is empty", _allowed(schema))
        return
    hint = next((hint for kind in named if (hint := _right_form(kind, value))), "")
    message = "must be " + " or ".join(_KINDS[kind] for kind in named)
    yield Mistake(
        steps, value, message, hint or schema.get("x-allowed", "") or _allowed({**schema, "type": None})
    )


def _right_form(kind: str, value: object) -> str:
    """How to write what was evidently meant: a number in quotes without them, a bare number with them."""
    if isinstance(value, str):
        text = value.strip()
        if kind == "boolean" and text.lower() in _YES_NO:
            return f"{str(_YES_NO[text.lower()]).lower()}, without quotes"
        if kind == "integer" and re.fullmatch(r"[+-]?[0-9]{1,18}", text):
            return f"{int(text)}, without quotes"
        if kind == "integer" and (meant := thousands(text)) is not None:
            return f"{meant}, as a plain number"
        if kind in ("number", "integer") and re.fullmatch(r"[+-]?[0-9]{1,18}(\.[0-9]{1,18})?", text):
            number = float(text)
            return f"{number:g}, without quotes" if kind == "number" or number.is_integer() else ""
    elif kind == "string" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return f'"{value}", in quotes'
    elif kind == "string" and isinstance(value, bool):
        return f'"{str(value).lower()}", in quotes'
    elif kind == "integer" and isinstance(value, float) and value.is_integer():
        return f"{int(value)}, without a decimal point"
    return ""


def _unknown_keys(
    steps: tuple[str | int, ...], value: object, schema: Mapping[str, Any]
) -> Iterator[Mistake]:
    known = schema.get("properties", {})
    for key in value if isinstance(value, Mapping) else ():
        if key not in known:
            # Not its value: it may be a secret whose name was misspelt.
            yield Mistake((*steps, str(key)), None, "is not known here", did_you_mean(str(key), known))


def _missing_keys(
    steps: tuple[str | int, ...], value: object, schema: Mapping[str, Any]
) -> Iterator[Mistake]:
    for key in schema["required"]:
        if isinstance(value, Mapping) and key not in value:
            described = schema.get("properties", {}).get(key, {})
            allowed = schema.get("x-allowed", "") or _allowed(described)
            yield Mistake((*steps, key), None, "is required and missing", allowed)


def _bad_key(steps: tuple[str | int, ...], value: object, schema: Mapping[str, Any]) -> Iterator[Mistake]:
    yield Mistake((*steps, str(value)), None, "is no usable name", schema.get("x-allowed", ""))


def _too_much(steps: tuple[str | int, ...], value: object, schema: Mapping[str, Any]) -> Iterator[Mistake]:
    allowed = _allowed(schema)
    if isinstance(value, (int, float)) and schema.get("maximum") == 1 and 1 < value <= 100:
        allowed = f"{allowed}: {value / 100:g} for {value:g} percent"
    yield Mistake(steps, value, "is too large", allowed)


def _too_little(steps: tuple[str | int, ...], value: object, schema: Mapping[str, Any]) -> Iterator[Mistake]:
    yield Mistake(steps, value, "is too small", _allowed(schema))


def _wrong(message: str) -> Callable[[tuple[str | int, ...], object, Mapping[str, Any]], Iterator[Mistake]]:
    def word(steps: tuple[str | int, ...], value: object, schema: Mapping[str, Any]) -> Iterator[Mistake]:
        yield Mistake(steps, value, message, _allowed(schema))

    return word


def _wrong_format(
    steps: tuple[str | int, ...], value: object, schema: Mapping[str, Any]
) -> Iterator[Mistake]:
    said = networks.mistake(value) if schema["format"] == _NETWORK and isinstance(value, str) else None
    yield Mistake(steps, value, *(said or ("is not of the right form", _allowed(schema))))


def _not_a_choice(
    steps: tuple[str | int, ...], value: object, schema: Mapping[str, Any]
) -> Iterator[Mistake]:
    choices = [str(choice) for choice in schema["enum"] if choice is not None]
    allowed = did_you_mean(str(value), choices) if isinstance(value, str) else ""
    yield Mistake(
        steps, value, "is none of the choices", allowed.replace("known: ", "") or ", ".join(choices)
    )


_WORDINGS: Mapping[str, Callable[[tuple[str | int, ...], object, Mapping[str, Any]], Iterator[Mistake]]] = {
    "type": _wrong_type,
    "enum": _not_a_choice,
    "additionalProperties": _unknown_keys,
    "required": _missing_keys,
    "maximum": _too_much,
    "minimum": _too_little,
    "exclusiveMinimum": _too_little,
    "maxLength": _wrong("is too long"),
    "minLength": _wrong("is empty"),
    "minItems": _wrong("is empty"),
    "maxItems": _wrong("is too long a list"),
    "uniqueItems": _wrong("names one thing twice"),
    "propertyNames": _bad_key,
    "pattern": _wrong("is not of the right form"),
    "format": _wrong_format,
    "anyOf": _wrong("is not of the right form"),
}


def _allowed(schema: Mapping[str, Any]) -> str:
    """What a schema allows, in words."""
    if "x-allowed" in schema:
        return str(schema["x-allowed"])
    if "enum" in schema:
        return ", ".join(str(choice) for choice in schema["enum"] if choice is not None)
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f"{low} to {high}"
    if low is not None or high is not None:
        return f"at least {low}" if high is None else f"at most {high}"
    if "maxLength" in schema and "pattern" not in schema:
        return f"at most {schema['maxLength']} characters"
    kinds = schema.get("type") or []
    return " or ".join(
        _KINDS[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds) if kind != "null"
    )


def _passing_over(keyword: Callable[..., Any]) -> Callable[..., Any]:
    def check(validator: Any, expected: Any, instance: Any, schema: Any) -> Any:
        return None if isinstance(instance, Opaque) else keyword(validator, expected, instance, schema)

    return check


def _whole_pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not re.fullmatch(pattern, instance):
        yield ValidationError("is not of the right form")


def _reject_key_pattern(validator: Any, names: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    for key in instance if isinstance(instance, Mapping) else ():
        for error in validator.descend(instance=key if isinstance(key, str) else "", schema=names):
            yield ValidationError(
                "is no usable name", validator="propertyNames", instance=key, schema=names, context=[error]
            )


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return isinstance(value, int) or math.isfinite(value)


_extend: Any = extend

#: JSON Schema with YAML's own types: 1.0 is no whole number, .nan is none; patterns cover all of a value.
_STRICT: Any = _extend(
    Draft202012Validator,
    validators={
        name: _passing_over(keyword)
        for name, keyword in {
            **Draft202012Validator.VALIDATORS,
            "pattern": _whole_pattern,
            "propertyNames": _reject_key_pattern,
        }.items()
    },
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine_many(
        {
            "integer": lambda _, value: isinstance(value, int) and not isinstance(value, bool),
            "number": lambda _, value: _is_number(value),
        }
    ),
)
