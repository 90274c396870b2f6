"""Reading the catalog's own data files, and versions in them."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

import yaml

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def text(name: str) -> str:
    """A data file's text, by its path under data/."""
    return (files("boxwright.catalog") / "data" / name).read_text(encoding="utf-8")


def yaml_file(name: str) -> Any:
    """A YAML data file."""
    return yaml.load(text(name), Loader=_LOADER)  # a safe loader, in C where libyaml is there


def names(folder: str, ending: str) -> list[str]:
    """The data files of a folder, sorted."""
    place = files("boxwright.catalog") / "data" / folder
    return sorted(f"{folder}/{entry.name}" for entry in place.iterdir() if entry.name.endswith(ending))


def version(value: str) -> tuple[int, ...]:
    """A version for comparing: `0.29.0` -> (0, 29, 0); empty when it begins with no number."""
    found = re.match(r"v?(\d{1,9}(?:\.\d{1,9})*)", value)
    return tuple(int(part) for part in found.group(1).split(".")) if found else ()
