"""What a release of vLLM takes, from the source of its package."""

from __future__ import annotations

import argparse
import enum
import typing
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from boxwright.releases.forms import OptionError, forms
from boxwright.releases.interpreter import TROUBLE, Interpreter, enough_stack
from boxwright.releases.natives import ignored
from boxwright.releases.recorder import Added, Recorder
from boxwright.releases.values import Frame, Special, Unreadable

PACKAGE = "vllm"
#: Where `vllm serve` takes its parser from; the module behind it has moved three times.
_PARSER = "vllm.entrypoints.cli.serve.make_arg_parser"
#: The rest of `vllm serve` that the options depend on: no card is asked, and no plugin is loaded.
_MACHINE: Mapping[str, Any] = {
    "vllm.platforms.current_platform": SimpleNamespace(device_type="", pre_register_and_update=ignored),
    "vllm.utils.LazyLoader": Special("lazy_module"),
    "vllm.utils.import_utils.LazyLoader": Special("lazy_module"),
}
#: Part of the table -> where its names are, newest place first.
_NAMES: Mapping[str, tuple[str, ...]] = {
    "attention_backends": (
        "vllm.v1.attention.backends.registry.AttentionBackendEnum",
        "vllm.attention.backends.registry.AttentionBackendEnum",
    ),
    "speculative_methods": ("vllm.config.speculative.SpeculativeMethod",),
    "tool_parsers": ("vllm.tool_parsers._TOOL_PARSERS_TO_REGISTER",),
    "reasoning_parsers": ("vllm.reasoning._REASONING_PARSERS_TO_REGISTER",),
    "quantization": ("vllm.model_executor.layers.quantization.QuantizationMethods",),
    "env_vars": ("vllm.envs.environment_variables",),
}


def read(files: Callable[[str], str | None]) -> dict[str, Any]:
    """The options and other names of a release, by the parts of the catalog's table. Raises OptionError."""
    with enough_stack():
        return _read(files)


def _read(files: Callable[[str], str | None]) -> dict[str, Any]:
    reader = Interpreter(PACKAGE, files, _MACHINE)
    parser = Recorder()
    try:
        make = reader.find(_PARSER)
        reader.call(make, [parser], {}, Frame(reader.module(PACKAGE), {}))
    except (*TROUBLE, RecursionError) as error:
        raise OptionError([str(error)]) from error
    if reader.problems:
        raise OptionError(reader.problems)
    help_option = Added(("-h", "--help"), {"action": "help", "default": argparse.SUPPRESS})
    table: dict[str, Any] = {"options": forms([help_option, *parser.added], _pairs(reader))}
    for part, places in _NAMES.items():
        table[part] = _names(reader, part, places)
    return table


def _names(reader: Interpreter, part: str, places: tuple[str, ...]) -> list[str]:
    """The names of a part, from the first of its places that the package has. Raises OptionError."""
    for place in places:
        try:
            found = reader.find(place)
        except (*TROUBLE, RecursionError):
            continue
        if isinstance(found, type) and issubclass(found, enum.Enum):
            return sorted(one.name for one in found)
        if isinstance(found, dict):
            return sorted(key for key in found if part != "env_vars" or key.startswith("VLLM_"))
        literals = _literals(found)
        if literals:
            return sorted(literals)
    raise OptionError([f"the package has its {part} in none of the known places: {', '.join(places)}"])


def _literals(hint: Any) -> set[str]:
    """The values of Literal types, in unions too."""
    if typing.get_origin(hint) is typing.Literal:
        return {str(one) for one in typing.get_args(hint)}
    return {value for one in typing.get_args(hint) for value in _literals(one)}


def _pairs(reader: Interpreter) -> Mapping[str, str]:
    """The prefixes of switches and of their opposites, since vLLM 0.33."""
    try:
        found = reader.attribute(
            reader.find("vllm.utils.argparse_utils.EnableDisableAction"), "_inverse_prefixes"
        )
    except Unreadable:
        return {}
    return found if isinstance(found, dict) else {}
