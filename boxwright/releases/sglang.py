"""What a release of SGLang takes, from the source of its package."""

from __future__ import annotations

import argparse
import enum
from collections.abc import Callable
from typing import Any

from boxwright.releases.forms import OptionError, forms
from boxwright.releases.interpreter import TROUBLE, Interpreter, enough_stack
from boxwright.releases.recorder import Added, Recorder
from boxwright.releases.values import Frame, source_of

PACKAGE = "sglang"
_RECORD = "sglang.srt.server_args.ServerArgs"
_ALGORITHMS = "sglang.srt.speculative.spec_info.SpeculativeAlgorithm"
_REGISTRY = "sglang.srt.environ.Envs"


def read(files: Callable[[str], str | None]) -> dict[str, Any]:
    """The options and other names of a release, by the parts of the catalog's table. Raises OptionError."""
    with enough_stack():
        return _read(files)


def _read(files: Callable[[str], str | None]) -> dict[str, Any]:
    reader = Interpreter(PACKAGE, files)
    parser = Recorder()
    try:
        record = reader.find(_RECORD)
        reader.call(reader.attribute(record, "add_cli_args"), [parser], {}, Frame(reader.module(PACKAGE), {}))
    except (*TROUBLE, RecursionError) as error:
        raise OptionError([str(error)]) from error
    if reader.problems:
        raise OptionError(reader.problems)
    help_option = Added(("-h", "--help"), {"action": "help", "default": argparse.SUPPRESS})
    return {
        "options": forms([help_option, *parser.added]),
        "speculative_methods": _algorithms(reader),
        "env_vars": _variables(reader),
    }


def _algorithms(reader: Interpreter) -> list[str]:
    """The names that --speculative-algorithm takes; NEXTN is EAGLE by an older name. Raises OptionError."""
    try:
        found = reader.find(_ALGORITHMS)
    except (*TROUBLE, RecursionError) as error:
        raise OptionError([f"the speculative algorithms: {error}"]) from error
    if not (isinstance(found, type) and issubclass(found, enum.Enum)):
        raise OptionError([f"the speculative algorithms are no enumeration in {_ALGORITHMS}"])
    return sorted({one.name for one in found if one.name != "NONE"} | {"NEXTN"})


def _variables(reader: Interpreter) -> list[str]:
    """The environment variables that the release reads by its own registry. Raises OptionError."""
    try:
        source = source_of(reader.find(_REGISTRY))
    except (*TROUBLE, RecursionError) as error:
        raise OptionError([f"the environment variables: {error}"]) from error
    names = sorted(name for name in source.names if name.startswith("SGLANG_")) if source else []
    if not names:
        raise OptionError([f"no environment variables in {_REGISTRY}"])
    return names
