"""What a run came to, in a sentence: of one host, and of all of them together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from boxwright.texts import lasting

#: Hosts that are named; of more the number is told.
MOST = 5
#: The kind of failure of a box that had no turn, because one before it failed.
NOT_BEGUN = "not begun"


def counted(number: int, what: str = "change") -> str:
    """`1 change`, `2 changes`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def of_host(name: str, changed: int, seconds: float, *, check: bool) -> str:
    """A host on which all went well."""
    if check:
        would = f"{counted(changed)} would be made" if changed else "nothing would change"
        return f"{name}: {would}; nothing was done"
    did = (
        f"{counted(changed)} {'was' if changed == 1 else 'were'} made" if changed else "nothing had to change"
    )
    return f"{name}: {did}, in {lasting(seconds)}"


def of_all(found: Mapping[str, Mapping[str, Any]], seconds: float, *, check: bool) -> str:
    """All hosts together, the good ones first; "" for a single one. found: changed and failure of each."""
    if len(found) < 2:
        return ""
    kinds: dict[str, list[str]] = {}
    for name, one in found.items():
        kinds.setdefault(_kind(one), []).append(name)
    changes = counted(sum(int(found[name]["changed"]) for name in kinds.get("changed", ())))
    words = {
        "changed": f"would change ({changes})" if check else f"changed ({changes})",
        "declared": "{is} as declared",
        "refused": "{was} refused",
        "failed": "failed",
        NOT_BEGUN: "{was} not begun",
        "unreachable": "could not be reached",
    }
    parts = [
        _part(kinds[kind], said, kind, alone=len(kinds) == 1) for kind, said in words.items() if kind in kinds
    ]
    whole = f"All {parts[0]}" if len(parts) == 1 else f"Of {len(found)} hosts {_joined(parts)}"
    return f"{whole}, in {lasting(seconds)}{'; nothing was done' if check else ''}"


def _kind(one: Mapping[str, Any]) -> str:
    failure = one.get("failure")
    if not failure:
        return "changed" if one["changed"] else "declared"
    kind = str(failure.get("kind"))
    return kind if kind in ("refused", "unreachable", NOT_BEGUN) else "failed"


def _part(names: Sequence[str], words: str, kind: str, *, alone: bool) -> str:
    """How many, what of them, and which where that is worth knowing."""
    count, many = len(names), len(names) > 1
    said = words.format(**{"is": "are" if many else "is", "was": "were" if many else "was"})
    if alone:
        return f"{count} hosts {said}"
    if kind in ("changed", "declared"):
        return f"{count} {said}"
    more = count - MOST
    return f"{count} {said} ({', '.join(names[:MOST])}{f' and {more} more' if more > 0 else ''})"


def _joined(parts: Sequence[str]) -> str:
    return f"{', '.join(parts[:-1])} and {parts[-1]}"
