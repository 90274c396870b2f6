"""The options and variables that a deployment names itself, checked against the real table of the release."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from boxwright.catalog import OptionTable
from boxwright.catalog.options import Option
from boxwright.engines.command import OptionProblem
from boxwright.engines.dialect import VLLM, Dialect
from boxwright.engines.secrets import secret_value
from boxwright.engines.vllm_names import spelling, unknown_name
from boxwright.engines.vllm_variables import variable_problem

_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][-+]?\d+)?")
_HUMAN = re.compile(r"-?\d+(\.\d+)?\s*[kKmMgGtT]?i?[bB]?")


def unsafe(text: str) -> str | None:
    """Why a text cannot be an argument's value, None when it can: an option by its dash, or not printable."""
    if text.startswith("-") and not _NUMBER.fullmatch(text):
        return "would be taken for an option, since it begins with a dash"
    return None if text.isprintable() else "has characters in it that cannot be printed"


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
    dialect: Dialect = VLLM

    def options(self, given: Mapping[str, object]) -> Checked:
        """The arguments of extra_args."""
        checked = Checked()
        seen: set[str] = set()
        plugins = {spelling(name) for name in given} & {option for _, option in self.dialect.plugins}
        for raw, value in given.items():
            path = f"extra_args.{raw}"
            head, dot, key = str(raw).lstrip("-").partition(".")
            base = head.replace("_", "-")
            option, problem = self._option(base, value, path)
            if problem:
                checked.problems.append(problem)
            if option is None:
                continue
            name = (base if option.is_switch else option.name) + dot + key
            identity = option.name + dot + key
            if identity in seen:
                checked.problems.append(_twice(name, path))
                continue
            seen.add(identity)
            words, problem = self._argument(name, option, value, path)
            if problem is None and self.dialect.plugin(option.name) not in plugins and isinstance(value, str):
                problem = unknown_name(self.table, self.release, self.exact, name, value, path, self.dialect)
            if problem:
                checked.problems.append(problem)
            if problem is None or not problem.sure:
                checked.argv += words
        return checked

    def variables(self, given: Mapping[str, str]) -> Checked:
        """The environment that a deployment names."""
        checked = Checked()
        for name, value in given.items():
            problem = variable_problem(
                self.table, self.release, self.exact, str(name), str(value), self.dialect
            )
            if problem:
                checked.problems.append(problem)
            if problem is None or not problem.sure:
                checked.env[str(name)] = str(value)
        return checked

    def _option(self, name: str, value: object, path: str) -> tuple[Option | None, OptionProblem | None]:
        """The option to write, None for one that may not be, and what is wrong with naming it."""
        problem = self._unusable(name, value, path)
        if problem:
            return None, problem
        option = self.table.option(name, self.release)
        if option:
            return option, None
        problem = self._absent(name, path)
        # Of a release that was not read it is not sure: the option is written, the advice stays.
        return (None if problem.sure else Option(name, "optional str", None, None, many=True)), problem

    def _unusable(self, name: str, value: object, path: str) -> OptionProblem | None:
        declared = self.dialect.notes["declared"]
        canonical = self.table.canonical(name, self.release) or name
        key = declared.get(canonical) or declared.get(name.removeprefix("no-"))
        if key:
            return OptionProblem(
                "option-is-declared",
                path,
                f"the option {name} is written by the plan, from the deployment's {key}",
                (f"set {key} instead",),
            )
        if secret_value(value):
            return OptionProblem(
                "secret-in-options",
                path,
                f"the value of {name} looks like a secret: it would stand in the unit and in `ps`",
                ("api_key: … for the endpoint's key", "box_hub: {token: …} for the hub's"),
            )
        return None

    def _absent(self, name: str, path: str) -> OptionProblem:
        """An option that the release does not have: in none, not yet, not any more."""
        title = self.dialect.title
        ways = tuple(self.dialect.notes["instead"].get(name.removeprefix("no-"), ()))
        have = self.table.exists_in(name) or self.table.exists_in(name.removeprefix("no-"))
        if not have:
            like = get_close_matches(name, self.table.names(), 1, 0.75)
            guess = (f"did you mean {like[0]}?",) if like else ()
            return OptionProblem(
                "option-in-no-release",
                path,
                f"no release of {title} from {self.table.releases[0]} to {self.table.releases[-1]} has an "
                f"option {name}",
                ways or guess or ("leave it out",),
            )
        place = self.table.releases.index(self.release)
        before = [one for one in have if self.table.releases.index(one) < place]
        if not before:
            return OptionProblem(
                "option-not-yet",
                path,
                f"the option {name} exists since {title} {have[0]}; the image has {self.release}",
                (*ways, f"an image of {title} {have[0]} or newer", "leave it out"),
                sure=self.exact,
            )
        # An option may come back later, as a name of another one.
        again = next((one for one in have if self.table.releases.index(one) > place), None)
        return OptionProblem(
            "option-removed",
            path,
            f"{title} has no option {name} any more since the release after {before[-1]}"
            f"{f', and again from {again} on' if again else ''}; the image has {self.release}",
            ways or ("leave it out",),
            sure=self.exact,
        )

    def _argument(
        self, name: str, option: Option, value: object, path: str
    ) -> tuple[list[str], OptionProblem | None]:
        """The words of an option, and what is wrong with its value."""
        if value is None:
            return [], None
        if option.is_switch:
            return self._switch(name, option, value, path)
        if isinstance(value, bool):
            return [], _wrong(path, name, "takes a value, not true or false", option)
        if isinstance(value, (list, tuple)) and option.many:
            texts = [_plain(one) for one in value]
        elif isinstance(value, (Mapping, list, tuple)):
            if not _is_json(option):
                return [], _wrong(path, name, "takes one plain value", option)
            texts = [_dump(value)]
        else:
            texts = [_plain(value)]
        problem = next(
            (problem for text in texts if (problem := self._value(name, option, text, path))), None
        )
        return [f"--{name}", *texts] if texts else [], problem

    def _switch(
        self, name: str, option: Option, value: object, path: str
    ) -> tuple[list[str], OptionProblem | None]:
        if not isinstance(value, bool):
            return [], _wrong(path, name, "is switched on and off by true and false", option)
        if value:
            return [f"--{name}"], None
        if name != option.name or option.negation is None:
            return [], None
        return [f"--{option.negation}"], None

    def _value(self, name: str, option: Option, text: str, path: str) -> OptionProblem | None:
        harm = unsafe(text)
        if harm:
            return _wrong(path, name, harm, option)
        kind = option.type.removeprefix("optional ")
        if option.choices and not option.many and text not in option.choices:
            return OptionProblem(
                "option-value",
                path,
                f"{name} in {self.dialect.title} {self.release} knows no {text[:60]!r}",
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


def _twice(name: str, path: str) -> OptionProblem:
    return OptionProblem(
        "option-value", path, f"the option {name} is named twice, by two spellings", ("name it once",)
    )


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
