"""The environment that a deployment names, checked against what each release of vLLM reads."""

from __future__ import annotations

import re
from difflib import get_close_matches

from boxwright.catalog import OptionTable
from boxwright.engines.command import OptionProblem
from boxwright.engines.dialect import VLLM, Dialect
from boxwright.engines.secrets import secret_name, secret_value
from boxwright.engines.vllm_names import unknown_name

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: The variable that named the attention backend before there was an option.
BACKEND = "VLLM_ATTENTION_BACKEND"


def variable_problem(
    table: OptionTable, release: str, exact: bool, name: str, value: str, dialect: Dialect = VLLM
) -> OptionProblem | None:
    """What is wrong with a variable, None where nothing is. exact: the table is the image's own."""
    path = f"env.{name}"
    if not _NAME.fullmatch(name):
        return OptionProblem(
            "variable-name",
            path,
            f"{name[:60]!r} is no name of an environment variable",
            ("letters, digits and underscores, no digit first",),
        )
    if not value.isprintable():
        return OptionProblem(
            "variable-name",
            path,
            f"the value of {name} has characters in it that cannot be printed",
            ("write it on one line",),
        )
    if secret_name(name) or secret_value(value):
        return OptionProblem(
            "secret-in-environment",
            path,
            f"{name} would be a secret in the unit and in `docker inspect`",
            ("api_key: … for the endpoint's key", "box_hub: {token: …} for the hub's"),
        )
    key = dialect.notes["variables"].get(name)
    if key:
        return OptionProblem(
            "variable-is-declared",
            path,
            f"{name} is decided by the plan, from {key}",
            (f"set {key} instead",),
        )
    if not name.startswith(dialect.prefix):
        return None
    return _unread(table, release, exact, name, path, dialect) or (
        unknown_name(table, release, exact, "attention-backend", value, path) if name == BACKEND else None
    )


def _unread(
    table: OptionTable, release: str, exact: bool, name: str, path: str, dialect: Dialect
) -> OptionProblem | None:
    """A variable that the release does not read: in none, not yet, not any more."""
    have, title = table.known("env_vars", name), dialect.title
    ways = tuple(dialect.notes["environment"].get(name, ()))
    if not have:
        like = get_close_matches(name, table.part("env_vars", release), 1, 0.8)
        guess = (f"did you mean {like[0]}?",) if like else ()
        return OptionProblem(
            "variable-unknown",
            path,
            f"no release of {title} from {table.releases[0]} to {table.releases[-1]} reads {name}: it would "
            "be ignored without a word",
            ways or (*guess, "leave it out"),
            sure=exact and dialect.all_variables,
        )
    if release in have:
        return None
    late = table.releases.index(have[-1]) < table.releases.index(release)
    when = f"until {have[-1]}" if late else f"since {have[0]}"
    return OptionProblem(
        "variable-removed" if late else "variable-not-yet",
        path,
        f"{title} read {name} {when}; {release} ignores it without a word"
        if late
        else f"{title} reads {name} {when}; {release} ignores it without a word",
        ways or (("leave it out",) if late else (f"an image of {title} {have[0]} or newer", "leave it out")),
        sure=exact,
    )
