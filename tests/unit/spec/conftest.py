"""Inventories made on the spot."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from boxwright.spec.inventory import Inventory, load
from boxwright.spec.validate import check

HOSTS = "all:\n  hosts:\n    box1:\n"
Write = Callable[[Mapping[str, str]], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write files of an inventory; hosts.yml lists box1 unless it is given."""

    def do(files: Mapping[str, str]) -> Path:
        for name, text in {"hosts.yml": HOSTS, **files}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path

    return do


@pytest.fixture
def read(write: Write) -> Callable[[Mapping[str, str]], Inventory]:
    """The inventory of some files."""
    return lambda files: load([write(files)])


@pytest.fixture
def told(
    read: Callable[[Mapping[str, str]], Inventory], tmp_path: Path
) -> Callable[[Mapping[str, str]], list[str]]:
    """What a check says about an inventory of some files, one line a problem, its directory left out."""
    return lambda files: [
        str(problem).replace(f"{tmp_path}/", "").replace("\n    allowed: ", " | ")
        for problem in check(read(files))
    ]
