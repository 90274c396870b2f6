"""Names that vLLM's parser takes as plain text and judges later: attention backends, parsers, "
"quantizations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from boxwright.catalog import OptionTable
from boxwright.engines.command import OptionProblem
from boxwright.engines.dialect import VLLM, Dialect

#: Names that mean "choose by yourself".
_AUTOMATIC = ("auto", "AUTO", "none", "NONE", "")


def notes() -> Mapping[str, Any]:
    """vLLM's ways out, and which keys of a deployment write which options."""
    return VLLM.notes


def spelling(name: object) -> str:
    """An option's name as the parser has it: `--max_model_len` is `max-model-len`."""
    return str(name).lstrip("-").replace("_", "-")


def unknown_name(
    table: OptionTable,
    release: str,
    exact: bool,
    option: str,
    value: str,
    path: str,
    dialect: Dialect = VLLM,
) -> OptionProblem | None:
    """What is wrong with a name that the release does not have; None where it has it, or lists none."""
    part = dialect.part(option)
    known = table.part(part, release) if part else ()
    name = value.upper() if option == "attention-backend" else value
    if part is None or not known or name in known or name in _AUTOMATIC:
        return None
    have = table.known(part, name)
    if have:
        late = table.releases.index(have[-1]) < table.releases.index(release)
        when = f"until {have[-1]}" if late else f"since {have[0]}"
        message = f"{dialect.title} has {option} {value[:60]} {when}, and the image has {release}"
    else:
        message = f"{dialect.title} {release} has no {option} named {value[:60]!r}"
    return OptionProblem("option-value", path, message, _ways(option, name, known, dialect), sure=exact)


def _ways(option: str, name: str, known: Sequence[str], dialect: Dialect) -> tuple[str, ...]:
    said: Mapping[str, Sequence[str]] = dialect.notes["values"].get(option, {})
    like = get_close_matches(name, known, 1, 0.6)
    return (
        *said.get(name.lower(), ()),
        *((f"did you mean {like[0]}?",) if like else ()),
        "leave it out: the engine picks one" if option in ("attention-backend", "quantization") else "",
    )[: 3 if like else 2] or ("leave it out",)
