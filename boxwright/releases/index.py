"""The package index: which releases a project published, and the files of each (PEP 503, PEP 691)."""

from __future__ import annotations

import html.parser
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from boxwright.catalog import reading
from boxwright.errors import EXIT_BAD_INPUT, UserError

PYPI = "https://pypi.org/simple/"
_JSON = "application/vnd.pypi.simple.v1+json"
#: What an index may answer with: JSON first.
ACCEPT = f"{_JSON}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
#: A release that a person means: no pre-release.
_RELEASE = re.compile(r"\d+(\.\d+)+(\.post\d+)?")
_WHEEL = re.compile(r"(?P<name>[^-]+)-(?P<version>[^-]+)(-\d[^-]*)?-[^-]+-[^-]+-(?P<platform>[^-]+)\.whl")


@dataclass(frozen=True)
class Package:
    """A published file. url: where it is. sha256: None where the index says none. yanked: taken back."""

    filename: str
    url: str
    sha256: str | None = None
    yanked: bool = False

    @property
    def is_wheel(self) -> bool:
        """Whether it is a wheel, a zip archive that can be read in parts."""
        return self.filename.endswith(".whl")

    def version(self, project: str) -> str | None:
        """The release that it belongs to."""
        wheel = _WHEEL.fullmatch(self.filename)
        if wheel:
            return wheel["version"]
        stem = self.filename.removesuffix(".tar.gz").removesuffix(".zip")
        name, dash, version = stem.rpartition("-")
        return version if dash and name.replace("_", "-").lower() == project else None


def packages(project: str, page: bytes, kind: str, address: str) -> list[Package]:
    """The files on a project's page. Raises UserError for a page that is none."""
    try:
        text = page.decode("utf-8")
        if "json" in kind:
            return [_from_json(entry, address) for entry in json.loads(text)["files"]]
        return _Links(address).read(text)
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"the package index answered for {project} with what is no list of files",
            why=f"{type(error).__name__}: {error}",
            ways_out=(
                "set PIP_INDEX_URL to an index of Python packages",
                "name the file itself: --package FILE",
            ),
        ) from error


def _from_json(entry: Any, address: str) -> Package:
    hashes = entry.get("hashes") or {}
    return Package(
        str(entry["filename"]),
        urljoin(address, entry["url"]),
        hashes.get("sha256"),
        bool(entry.get("yanked")),
    )


class _Links(html.parser.HTMLParser):
    """The links of an index's page in HTML."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self._address = address
        self._found: list[Package] = []

    def read(self, text: str) -> list[Package]:
        self.feed(text)
        if not self._found:
            raise ValueError("no links")
        return self._found

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        href = given.get("href") if tag == "a" else None
        if not href:
            return
        url, _, fragment = urljoin(self._address, href).partition("#")
        sha256 = fragment.removeprefix("sha256=") if fragment.startswith("sha256=") else None
        name = unquote(urlsplit(url).path.rpartition("/")[2])
        if name.endswith((".whl", ".tar.gz")):
            self._found.append(Package(name, url, sha256, "data-yanked" in given))


def choose(project: str, release: str, found: Sequence[Package]) -> Package:
    """The file of a release that is read: a wheel for Linux on x86_64, else the sources. Raises UserError."""
    mine = [one for one in found if one.version(project) == release]
    if not mine:
        raise unknown_release(
            project, release, [version for one in found if (version := one.version(project))]
        )
    return min(mine, key=_preference)


def _preference(package: Package) -> tuple[int, str]:
    wheel = _WHEEL.fullmatch(package.filename)
    if wheel is None:
        return (2 if package.filename.endswith(".tar.gz") else 3), package.filename
    platform = wheel["platform"]
    return (
        0 if "linux" in platform and "x86_64" in platform else 1 if platform == "any" else 4
    ), package.filename


def unknown_release(project: str, release: str, published: Sequence[str]) -> UserError:
    """The error for a release that was not published, with the nearest that were."""
    known = sorted({one for one in published if _RELEASE.fullmatch(one)}, key=reading.version)
    near = get_close_matches(release, known, 3, 0.6)
    newest = known[-1] if known else None
    return UserError(
        f"{project} has published no release {release}",
        why=f"the newest is {newest}" if newest else "the package index lists no release of it",
        ways_out=tuple(f"--release {one}" for one in dict.fromkeys([*near, *([newest] if newest else [])])),
        status=EXIT_BAD_INPUT,
    )


Fetch = Callable[[str, str], tuple[bytes, str]]
