"""Did you mean: the known name nearest to a misspelt one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like `name`, or None. Letter case and `-` against `_` count for nothing."""
    names = list(known)
    folded = {candidate.casefold().replace("-", "_"): candidate for candidate in reversed(names)}
    found = get_close_matches(name.casefold().replace("-", "_"), list(folded), n=1, cutoff=0.6)
    return folded[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`did you mean "x"? known: …` for a message."""
    names = sorted(known)
    guess = nearest(name, names)
    listed = ", ".join(names) or "none"
    return f'did you mean "{guess}"? known: {listed}' if guess else f"known: {listed}"
