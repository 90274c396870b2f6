"""Stands for an argparse parser while a package is read: notes each option that is added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from boxwright.releases.values import Unreadable

#: Methods that give a group: its options are the parser's.
_GROUPS = frozenset({"add_argument_group", "add_mutually_exclusive_group"})
#: Methods that add no option.
_QUIET = frozenset({"set_defaults", "register", "print_help", "format_help"})


@dataclass(frozen=True)
class Added:
    """One call of add_argument."""

    names: tuple[Any, ...]
    given: Mapping[str, Any]


@dataclass(eq=False)
class Recorder:
    """The parser, and each of its groups."""

    added: list[Added] = field(default_factory=list)

    def call(self, method: str, given: list[Any], named: Mapping[str, Any]) -> Any:
        """A method of the parser. Raises Unreadable for one that might add options in another way."""
        if method == "add_argument":
            self.added.append(Added(tuple(given), dict(named)))
            return None
        if method in _GROUPS:
            return self
        if method in _QUIET:
            return None
        raise Unreadable(f"the parser's {method} is not followed")
