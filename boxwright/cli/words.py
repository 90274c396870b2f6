"""What a verb may be given beside its options."""

from __future__ import annotations

import sys
from typing import Any

from invoke import Task

from boxwright.errors import EXIT_BAD_INPUT, UserError
from boxwright.texts import printable, thousands


class WordOrNone(Task):  # type: ignore[misc]  # invoke's class is generic over what nobody here asks for
    """A verb with a word that may be left out: `explain` lists, `explain ID` tells.

    invoke takes a word that belongs to no option only where it misses one, and then insists on it. So the
    word is missed when the command line has one after the verb.
    """

    def get_arguments(self, *args: Any, **kwargs: Any) -> Any:
        """The arguments as invoke parses them."""
        found = super().get_arguments(*args, **kwargs)
        after = sys.argv[sys.argv.index(self.name) + 1 :] if self.name in sys.argv else []
        if any(not word.startswith("-") for word in after):
            for argument in found:
                if argument.positional:
                    argument.default = None
        return found


def whole(option: str, word: str, most: int) -> int:
    """The whole number from 1 to `most` that an option was given. Raises UserError for anything else."""
    digits = word.replace("_", "").replace(",", "")
    if not (
        digits.isascii() and digits.isdigit() and len(digits) <= len(str(most)) and 1 <= int(digits) <= most
    ):
        meant = thousands(word)
        raise UserError(
            f"{option} {printable(word)}: a whole number from 1 to {most} is needed",
            status=EXIT_BAD_INPUT,
            ways_out=(f"{option} {meant}",) if meant and meant <= most else (),
        )
    return int(digits)
