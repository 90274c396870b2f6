"""The options and variables that a deployment names itself, checked against the real table of the release."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from typing import Any

from boxwright.catalog import OptionTable, reading
from boxwright.catalog.options import Option
from boxwright.engines.command import OptionProblem

_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][-+]?\d+)?")
_HUMAN = re.compile(r"-?\d+(\.\d+)?\s*[kKmMgGtT]?i?[bB]?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD)$")


_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


def unsafe(text: str) -> str | None:
    """Why a text cannot be an argument's value, None when it can: an option by its dash, or not printable."""
    if text.startswith("-") and not _NUMBER.fullmatch(text):
        return "would be taken for an option, since it begins with a dash"
    return "has control characters in it" if _CONTROL.search(text) else None


@cache
def notes() -> Mapping[str, Any]:
    """Ways out, and which keys of a deployment write which options."""
    found: Mapping[str, Any] = reading.yaml_file("vllm_notes.yml")
    return found


@dataclass
class Checked:
    """Arguments and variables that the release takes, and the problems of those that it does not."""

    argv: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    problems: list[OptionProblem] = field(default_factory=list)


@dataclass(frozen=True)
class Checker:
    """The check for one release. exact: the table is the image's own."""

    table: OptionTable
    release: str
    exact: bool

    def options(self, given: Mapping[str, object]) -> Checked:
        """The arguments of extra_args."""
        checked = Checked()
        for raw, value in given.items():
            path = f"extra_args.{raw}"
            head, dot, key = str(raw).lstrip("-").partition(".")
            base = head.replace("_", "-")
            name = base + dot + key
            problem = self._unusable(base, path)
            if problem:
                checked.problems.append(problem)
                continue
            option = self.table.option(base, self.release)
            if option is None:
                problem = self._absent(base, path)
                if problem.sure:
                    checked.problems.append(problem)
                    continue
                checked.problems.append(problem)
                option = Option(base, "optional str", None, None, many=True)
            if not option.is_switch and base != option.name:
                name = option.name + name.removeprefix(base)
            found = self._argument(name, option, value, path)
            if isinstance(found, OptionProblem):
                checked.problems.append(found)
            else:
                checked.argv += found
        return checked

    def variables(self, given: Mapping[str, str]) -> Checked:
        """The environment that a deployment names."""
        checked = Checked()
        for name, value in given.items():
            problem = self._variable(str(name), str(value))
            if problem:
                checked.problems.append(problem)
            if problem is None or not problem.sure:
                checked.env[str(name)] = str(value)
        return checked

    def _unusable(self, name: str, path: str) -> OptionProblem | None:
        declared = notes()["declared"]
        canonical = self.table.canonical(name, self.release) or name
        key = declared.get(canonical) or declared.get(name.removeprefix("no-"))
        if key:
            return OptionProblem(
                "option-is-declared",
                path,
                f"the option {name} is written by the plan, from the deployment's {key}",
                (f"set {key} instead",),
            )
        return None

    def _absent(self, name: str, path: str) -> OptionProblem:
        """An option that the release does not have: in none, not yet, not any more."""
        ways = tuple(notes()["instead"].get(name.removeprefix("no-"), ()))
        have = self.table.exists_in(name) or self.table.exists_in(name.removeprefix("no-"))
        if not have:
            like = get_close_matches(name, self.table.names(), 1, 0.75)
            guess = (f"did you mean {like[0]}?",) if like else ()
            return OptionProblem(
                "option-in-no-release",
                path,
                f"no release of vLLM from {self.table.releases[0]} to {self.table.releases[-1]} has an "
                f"option "
                f"{name}",
                ways or guess or ("leave it out",),
            )
        if self.table.releases.index(have[0]) > self.table.releases.index(self.release):
            return OptionProblem(
                "option-not-yet",
                path,
                f"the option {name} exists since vLLM {have[0]}; the image has {self.release}",
                (*ways, f"an image of vLLM {have[0]} or newer", "leave it out"),
                sure=self.exact,
            )
        return OptionProblem(
            "option-removed",
            path,
            f"vLLM has no option {name} any more since the release after {have[-1]}; the image has "
            f"{self.release}",
            ways or ("leave it out",),
            sure=self.exact,
        )

    def _argument(self, name: str, option: Option, value: object, path: str) -> list[str] | OptionProblem:
        flag = f"--{name}"
        if value is None:
            return []
        if option.is_switch:
            return self._switch(name, option, value, path)
        if isinstance(value, bool):
            return _wrong(path, name, "takes a value, not true or false", option)
        if isinstance(value, (list, tuple)) and option.many:
            texts = [_plain(one) for one in value]
        elif isinstance(value, (Mapping, list, tuple)):
            if not _is_json(option):
                return _wrong(path, name, "takes one plain value", option)
            texts = [_dump(value)]
        else:
            texts = [_plain(value)]
        for text in texts:
            problem = self._value(name, option, text, path)
            if problem:
                return problem
        return [flag, *texts] if texts else []

    def _switch(self, name: str, option: Option, value: object, path: str) -> list[str] | OptionProblem:
        if not isinstance(value, bool):
            return _wrong(path, name, "is switched on and off by true and false", option)
        if value:
            return [f"--{name}"]
        if name != option.name or option.negation is None:
            return []
        return [f"--{option.negation}"]

    def _value(self, name: str, option: Option, text: str, path: str) -> OptionProblem | None:
        harm = unsafe(text)
        if harm:
            return _wrong(path, name, harm, option)
        kind = option.type.removeprefix("optional ")
        if option.choices and not option.many and text not in option.choices:
            return OptionProblem(
                "option-value",
                path,
                f"{name} in vLLM {self.release} knows no {text[:60]!r}",
                ("one of " + ", ".join(option.choices),),
                sure=self.exact,
            )
        if (
            (kind == "int" and not re.fullmatch(r"-?\d+", text))
            or (kind == "float" and not _NUMBER.fullmatch(text))
            or (kind.startswith("human_readable_int") and not (_HUMAN.fullmatch(text) or text == "auto"))
        ):
            return _wrong(path, name, "takes a number", option)
        if kind == "loads" and "." not in name and not _parses(text):
            return _wrong(path, name, "takes JSON, or a mapping", option)
        return None

    def _variable(self, name: str, value: str) -> OptionProblem | None:
        path = f"env.{name}"
        if not _VARIABLE.fullmatch(name):
            return OptionProblem(
                "variable-name",
                path,
                f"{name[:60]!r} is no name of an environment variable",
                ("letters, digits and underscores, no digit first",),
            )
        if _CONTROL.search(value):
            return OptionProblem(
                "variable-name",
                path,
                f"the value of {name} has control characters in it",
                ("write it on one line",),
            )
        if _SECRET.search(name.upper()):
            return OptionProblem(
                "secret-in-environment",
                path,
                f"{name} would be a secret in the unit and in `docker inspect`",
                ("api_key: … for the endpoint's key", "box_hub: {token: …} for the hub's"),
            )
        if not name.startswith("VLLM_"):
            return None
        have = self.table.known("env_vars", name)
        ways = tuple(notes()["environment"].get(name, ()))
        if not have:
            return OptionProblem(
                "variable-unknown",
                path,
                f"no release of vLLM that was read knows {name}: it would be ignored without a word",
                ways or ("leave it out",),
                sure=False,
            )
        if self.release not in have:
            late = self.table.releases.index(have[-1]) < self.table.releases.index(self.release)
            when = f"until {have[-1]}" if late else f"since {have[0]}"
            return OptionProblem(
                "variable-removed" if late else "variable-not-yet",
                path,
                f"vLLM read {name} {when}; {self.release} ignores it without a word",
                ways or ("leave it out",),
                sure=self.exact,
            )
        return None


def _wrong(path: str, name: str, what: str, option: Option) -> OptionProblem:
    allowed = "one of " + ", ".join(option.choices) if option.choices else f"a value of type {option.type}"
    return OptionProblem("option-value", path, f"the value of {name} {what}", (allowed,))


def _is_json(option: Option) -> bool:
    kind = option.type.removeprefix("optional ")
    return kind in ("loads", "union_dict_and_str") or kind.startswith("json:") or option.many


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else _dump(value)


def _dump(value: object) -> str:
    return json.dumps(_listed(value), separators=(",", ":"), ensure_ascii=True, default=str)


def _listed(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _listed(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_listed(item) for item in value]
    return value


def _parses(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def merged(parts: Sequence[Checked]) -> tuple[OptionProblem, ...]:
    """The problems of all parts."""
    return tuple(problem for part in parts for problem in part.problems)
