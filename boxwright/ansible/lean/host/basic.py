"""What modules of ours use of Ansible's `basic`, for calls without its wrapper: same names, same words.

Held against the original by tests, module by module.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Set, Tuple

#: What the entry was given: module, arguments, check.
given: Dict[str, Any] = {}

HIDDEN, PART_HIDDEN = "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER", "********"
YES = ("y", "yes", "on", "1", "true", "t", "1.0")
NO = ("n", "no", "off", "0", "false", "f", "0.0")
Spec = Dict[str, Dict[str, Any]]


class ArgumentError(Exception):
    """An argument is missing, unknown, or no value of its type."""


class AnsibleModule:
    """The arguments of a call, and the way to end it."""

    def __init__(
        self,
        argument_spec: Spec,
        supports_check_mode: bool = False,
        required_if: Sequence[Tuple[str, Any, Sequence[str]]] = (),
    ) -> None:
        self.no_log_values: Set[str] = set()
        self.check_mode = bool(given.get("check"))
        self._warnings: List[str] = []
        self.params: Dict[str, Any] = {}
        try:
            self._hide(argument_spec, given["arguments"])
            self.params = judged(argument_spec, given["arguments"], given["module"])
            required(self.params, required_if)
        except ArgumentError as error:
            self.fail_json(msg=str(error))
        if self.check_mode and not supports_check_mode:
            self.exit_json(skipped=True, msg="%s does not support check mode" % given["module"])

    def warn(self, warning: str) -> None:
        """Have something told beside the result."""
        if warning not in self._warnings:
            self._warnings.append(warning)

    def exit_json(self, **result: Any) -> None:
        """End well."""
        self._end(result, 0)

    def fail_json(self, msg: str, **result: Any) -> None:
        """End as a failure."""
        self._end(dict(result, msg=msg, failed=True), 1)

    def _end(self, result: Dict[str, Any], status: int) -> None:
        warnings = [*list(result.get("warnings") or []), *self._warnings]
        if warnings:
            result["warnings"] = warnings
        secrets = sorted(self.no_log_values, key=len, reverse=True)
        print("\n" + json.dumps(without(plain(result), secrets)))
        sys.stdout.flush()
        sys.exit(status)

    def _hide(self, spec: Spec, arguments: Dict[str, Any]) -> None:
        """Learn the values that are told nowhere."""
        for name, one in spec.items():
            value = arguments.get(name)
            if one.get("no_log"):
                self.no_log_values.update(texts(value))
            elif one.get("options"):
                for inner in value if isinstance(value, list) else [value]:
                    if isinstance(inner, dict):
                        self._hide(one["options"], inner)


def judged(spec: Spec, arguments: Dict[str, Any], owner: str) -> Dict[str, Any]:
    """The arguments by their types, defaults filled in. Raises ArgumentError."""
    strange = sorted(set(arguments) - set(spec))
    if strange:
        known = ", ".join(sorted(spec))
        raise ArgumentError(
            "Unsupported parameters for (%s) module: %s. Supported parameters include: %s."
            % (owner, ", ".join(strange), known)
        )
    absent = sorted(name for name in spec if spec[name].get("required") and name not in arguments)
    if absent:
        raise ArgumentError("missing required arguments: %s" % ", ".join(absent))
    found: Dict[str, Any] = {}
    for name, one in spec.items():
        value, needed = arguments.get(name, one.get("default")), one.get("required") or "default" in one
        found[name] = None if value is None and not needed else _judged(value, one, name, owner)
    return found


def _judged(value: Any, one: Dict[str, Any], name: str, owner: str) -> Any:
    kind = one.get("type") or "str"
    value = converted(value, kind, name)
    if kind == "list" and one.get("elements"):
        value = [converted(item, one["elements"], name, "Elements value for option") for item in value]
    choices = one.get("choices")
    for item in value if isinstance(value, list) else [value]:
        if choices and item not in choices:
            raise ArgumentError(
                "value of %s must be one of: %s, got: %s" % (name, ", ".join(map(str, choices)), item)
            )
    options = one.get("options")
    if options and isinstance(value, list):
        return [judged(options, item, owner) for item in value]
    return judged(options, value, owner) if options else value


def converted(value: Any, kind: str, name: str, what: str = "argument") -> Any:
    """A value as one of its type. Raises ArgumentError."""
    try:
        return TYPES[kind](value)
    except (TypeError, ValueError):
        raise ArgumentError(
            "%s '%s' is of type %s and we were unable to convert to %s"
            % (what, name, type(value).__name__, kind)
        ) from None


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _path(value: Any) -> str:
    return os.path.expanduser(os.path.expandvars(_text(value)))


def _bool(value: Any) -> bool:
    word = str(value).strip().lower()
    if word in YES or word in NO:
        return word in YES
    raise ValueError(word)


def _int(value: Any) -> int:
    if isinstance(value, float) and not value.is_integer():
        raise ValueError(value)
    return int(value)


def _list(value: Any) -> List[Any]:
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, str):
        return value.split(",")
    if isinstance(value, (int, float)):
        return [str(value)]
    raise TypeError(value)


def _dict(value: Any) -> Dict[str, Any]:
    found = json.loads(value) if isinstance(value, str) else value
    if not isinstance(found, dict):
        raise TypeError(value)
    return found


TYPES: Dict[str, Callable[[Any], Any]] = {
    "str": _text,
    "path": _path,
    "bool": _bool,
    "int": _int,
    "float": float,
    "list": _list,
    "dict": _dict,
}


def required(params: Dict[str, Any], rules: Iterable[Tuple[str, Any, Sequence[str]]]) -> None:
    """What one argument's value makes necessary. Raises ArgumentError."""
    for name, value, others in rules:
        absent = [one for one in others if params.get(one) is None] if params.get(name) == value else []
        if absent:
            raise ArgumentError(
                "%s is %s but all of the following are missing: %s" % (name, value, ", ".join(absent))
            )


def texts(value: Any) -> List[str]:
    """Every text and number in a value."""
    if isinstance(value, dict):
        return [text for one in value.values() for text in texts(one)]
    if isinstance(value, (list, tuple)):
        return [text for one in value for text in texts(one)]
    return [] if value is None or isinstance(value, bool) or value == "" else [str(value)]


def plain(value: Any) -> Any:
    """A result as JSON has it."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def without(value: Any, secrets: List[str]) -> Any:
    """A plain value in which no secret is told, as Ansible's own has it."""
    if not secrets:
        return value
    if isinstance(value, dict):
        return {key: without(one, secrets) for key, one in value.items()}
    if isinstance(value, list):
        return [without(one, secrets) for one in value]
    if value is None or isinstance(value, bool):
        return value
    text: Optional[str] = str(value)
    if text in secrets:
        return HIDDEN
    if not isinstance(value, str):
        return PART_HIDDEN if any(one in str(value) for one in secrets) else value
    for one in secrets:
        value = value.replace(one, PART_HIDDEN)
    return value
