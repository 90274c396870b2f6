"""One mistake in a declaration, and the error that carries all of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from boxwright.errors import EXIT_BAD_INPUT, UserError
from boxwright.texts import printable

MASK = "********"
_SECRET_NAME = re.compile(r"(^|[._\-])((?:api_?)?key|token|secrets?|password|passwd|credentials?)$", re.I)
_SECRET_ENV = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.I)
#: A name and a password before a host, with or without a scheme; `name:tag@sha256:…` is an image.
_URL_PASSWORD = re.compile(r"(?P<head>(?<!\w)\w+://[^/\s:@]*|(?<![^\s\"])[^/\s:@\"]*):[^/\s@\"]+@(?!sha\d+:)")
#: Variables whose value is an address: whatever stands before its last @ is a login, well formed or not.
_ADDRESS_NAME = re.compile(r"(^|[._])(proxy|endpoint|url)$")
_LOGIN = re.compile(r"^((?:\w+://)?[^:/@]*):.*@", re.DOTALL)
#: A private key, as somebody puts it where its certificate belongs.
_PRIVATE_KEY = re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?=-----END|$)", re.DOTALL)
#: Tokens that are known by their form, wherever somebody put them: the hub's, and those of common services.
_TOKEN = re.compile(r"(?<![A-Za-z0-9])(hf_|sk-|gh[a-z]_|github_pat_|glpat-|nvapi-)[A-Za-z0-9_-]{16,}")
#: A value longer than this is cut in a message, so that a mistake takes a line and not a screen.
_SHOWN_LENGTH = 80
#: Of a longer value no more is looked at: what is shown ends long before, and no password reaches so far.
_READ_LENGTH = 4096


@dataclass(frozen=True, order=True)
class Problem:
    """One mistake in a declaration.

    file, line: where the value stands (line counts from 1; both None when it stands nowhere, as a missing one
    does outside any file). host: whose variable it is, None for a fault of the inventory itself. variable:
    its path, as `box_deployments[0].port`. value: as shown to a person, secrets masked. message: what is
    wrong. allowed: what would be right, empty when the message says it.
    """

    file: str | None
    line: int | None
    host: str | None
    variable: str
    value: str
    message: str
    allowed: str = ""

    @property
    def where(self) -> str:
        """`file:line`, `file` or the host's name: the best that is known."""
        if self.file is None:
            return self.host or "inventory"
        return self.file if self.line is None else f"{self.file}:{self.line}"

    def __str__(self) -> str:
        owner = f"{self.host}: " if self.host and self.file is not None else ""
        subject = f"{self.variable}: " if self.variable else ""
        value = f" (is {self.value})" if self.value else ""
        lines = [f"{self.where}: {owner}{subject}{self.message}{value}"]
        if self.allowed:
            lines.append(f"    allowed: {self.allowed}")
        return "\n".join(printable(line) for line in lines)

    def to_json(self) -> dict[str, object]:
        """The same for a program."""
        return {
            "file": self.file,
            "line": self.line,
            "host": self.host,
            "variable": self.variable,
            "value": self.value,
            "message": self.message,
            "allowed": self.allowed,
        }


class SpecErrors(UserError):
    """All mistakes of a declaration at once; exit status EXIT_BAD_INPUT."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        count = len(self.problems)
        super().__init__(
            what=f"the inventory has {count} mistake{'' if count == 1 else 's'}; nothing was done",
            why="\n  ".join(str(problem).replace("\n", "\n  ") for problem in self.problems),
            status=EXIT_BAD_INPUT,
        )

    def to_json(self) -> dict[str, object]:
        """The error for a program, with each mistake as `Problem.to_json` has it."""
        return {
            **super().to_json(),
            "why": None,
            "problems": [problem.to_json() for problem in self.problems],
        }


def is_secret(path: str) -> bool:
    """Whether the variable at this path holds a secret, by its name: `….api_key`, `env.X_KEY`."""
    return bool(_SECRET_NAME.search(path)) or bool(".env." in path and _SECRET_ENV.search(path))


def shown(value: object, path: str = "") -> str:
    """A value as a message shows it: as YAML would have it on one line, cut when long, secrets masked."""
    if is_secret(path) and value not in (None, ""):
        return MASK
    if isinstance(value, str) and _ADDRESS_NAME.search(path):
        value = _LOGIN.sub(rf"\g<1>:{MASK}@", value)
    text = _PRIVATE_KEY.sub(rf"\g<1>{MASK}", _flow(value, path)[:_READ_LENGTH])
    text = _TOKEN.sub(MASK, _URL_PASSWORD.sub(rf"\g<head>:{MASK}@", text))
    return text if len(text) <= _SHOWN_LENGTH else text[: _SHOWN_LENGTH - 1] + "…"


def _flow(value: object, path: str) -> str:
    if isinstance(value, Mapping):
        items = (f"{printable(str(key))}: {_masked(item, f'{path}.{key}')}" for key, item in value.items())
        return "{" + ", ".join(items) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_masked(item, path) for item in value) + "]"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{printable(value)}"'
    return str(value)


def _masked(value: object, path: str) -> str:
    return MASK if is_secret(path) and value not in (None, "") else _flow(value, path)
