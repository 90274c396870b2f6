"""Did you mean: the known name nearest to a misspelt one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """The known name most like `name`, or None when none is as like as asked for (1 is the same name).

    Letter case and `-` against `_` count for nothing.
    """
    names = list(known)
    folded = {candidate.casefold().replace("-", "_"): candidate for candidate in reversed(names)}
    found = get_close_matches(name.casefold().replace("-", "_"), list(folded), n=1, cutoff=likeness)
    return folded[found[0]] if found else None


#: A longer list of names is shown only to one who is not near any of them.
_FEW = 12


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`did you mean "x"? known: …` for a message."""
    names = sorted(known)
    guess = nearest(name, names)
    listed = f"known: {', '.join(names) or 'none'}"
    if not guess:
        return listed
    return f'did you mean "{guess}"?' + (f" {listed}" if len(names) <= _FEW else "")
