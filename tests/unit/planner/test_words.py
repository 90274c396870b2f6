"""Sizes in messages."""

from __future__ import annotations

import pytest

from boxwright.planner.rules.words import GIB, gib_apart


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        (2.0, 1.5, ("2.0 GiB", "1.5 GiB")),
        (1.94, 1.90, ("1.94 GiB", "1.90 GiB")),
        (1.9034, 1.9021, ("1.903 GiB", "1.902 GiB")),
    ],
)
def test_two_sizes_are_never_told_alike(one: float, other: float, told: tuple[str, str]) -> None:
    assert gib_apart(one * GIB, other * GIB) == told
