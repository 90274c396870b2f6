"""Names that vLLM's parser takes as plain text and judges later: attention backends, parsers, "
"quantizations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any

from boxwright.catalog import OptionTable, reading
from boxwright.engines.command import OptionProblem

#: Option -> the part of the table that lists its names.
PARTS = {
    "attention-backend": "attention_backends",
    "tool-call-parser": "tool_parsers",
    "reasoning-parser": "reasoning_parsers",
    "quantization": "quantization",
}
#: Option -> the option that brings names of one's own, which no table can list.
PLUGINS = {"tool-call-parser": "tool-parser-plugin", "reasoning-parser": "reasoning-parser-plugin"}
#: Names that mean "choose by yourself".
_AUTOMATIC = ("auto", "AUTO", "none", "NONE", "")


@cache
def notes() -> Mapping[str, Any]:
    """Ways out, and which keys of a deployment write which options."""
    found: Mapping[str, Any] = reading.yaml_file("vllm_notes.yml")
    return found


def spelling(name: object) -> str:
    """An option's name as the parser has it: `--max_model_len` is `max-model-len`."""
    return str(name).lstrip("-").replace("_", "-")


def unknown_name(
    table: OptionTable, release: str, exact: bool, option: str, value: str, path: str
) -> OptionProblem | None:
    """What is wrong with a name that the release does not have; None where it has it, or lists none."""
    part = PARTS.get(option)
    known = table.part(part, release) if part else ()
    name = value.upper() if option == "attention-backend" else value
    if part is None or not known or name in known or name in _AUTOMATIC:
        return None
    have = table.known(part, name)
    if have:
        late = table.releases.index(have[-1]) < table.releases.index(release)
        when = f"until {have[-1]}" if late else f"since {have[0]}"
        message = f"vLLM has {option} {value[:60]} {when}, and the image has {release}"
    else:
        message = f"vLLM {release} has no {option} named {value[:60]!r}"
    return OptionProblem("option-value", path, message, _ways(option, name, known), sure=exact)


def _ways(option: str, name: str, known: Sequence[str]) -> tuple[str, ...]:
    said: Mapping[str, Sequence[str]] = notes()["values"].get(option, {})
    like = get_close_matches(name, known, 1, 0.6)
    return (
        *said.get(name.lower(), ()),
        *((f"did you mean {like[0]}?",) if like else ()),
        "leave it out: the engine picks one" if option in ("attention-backend", "quantization") else "",
    )[: 3 if like else 2] or ("leave it out",)
