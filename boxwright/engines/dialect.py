"""What differs between engines in how their options and variables are checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from boxwright.catalog import reading


@dataclass(frozen=True)
class Dialect:
    """An engine's way of naming things.

    title: as messages name it. prefix: of its own variables; all_variables: its table has all that it reads.
    parts: option -> the part of its table that lists the option's names, where the parser takes any text.
    plugins: option -> the option that brings names of one's own, which no table can list.
    """

    engine: str
    title: str
    prefix: str
    all_variables: bool
    parts: tuple[tuple[str, str], ...]
    plugins: tuple[tuple[str, str], ...] = ()

    def part(self, option: str) -> str | None:
        """The part of the table that lists an option's names."""
        return dict(self.parts).get(option)

    def plugin(self, option: str) -> str | None:
        """The option that brings further names for an option."""
        return dict(self.plugins).get(option)

    @property
    def notes(self) -> Mapping[str, Any]:
        """Ways out, and which keys of a deployment write which options."""
        return _notes(self.engine)


@cache
def _notes(engine: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = reading.yaml_file(f"{engine}_notes.yml")
    return found


VLLM = Dialect(
    "vllm",
    "vLLM",
    "VLLM_",
    all_variables=True,
    parts=(
        ("attention-backend", "attention_backends"),
        ("tool-call-parser", "tool_parsers"),
        ("reasoning-parser", "reasoning_parsers"),
        ("quantization", "quantization"),
    ),
    plugins=(
        ("tool-call-parser", "tool-parser-plugin"),
        ("reasoning-parser", "reasoning-parser-plugin"),
    ),
)
#: SGLang reads some variables past its registry, so a name that is not in the table is not surely ignored.
SGLANG = Dialect("sglang", "SGLang", "SGLANG_", all_variables=False, parts=())
