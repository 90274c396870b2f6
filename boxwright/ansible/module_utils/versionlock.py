"""dnf's versionlock: which versions of a package its list allows, and our own entries in it.

An entry of ours is what `dnf versionlock add` writes: NAME-EPOCH:VERSION-RELEASE.* of one package. Whether
such an entry is ours or a person's, the group's record tells, as for the holds of apt.
"""

from __future__ import annotations

import configparser
import fnmatch
import re
from typing import Dict, Iterable, List, NamedTuple, Optional

from ansible.module_utils.command import read, write
from ansible.module_utils.packages import Package

SETTINGS = "/etc/dnf/plugins/versionlock.conf"
LIST = "/etc/dnf/plugins/versionlock.list"
_ENTRY = re.compile(
    r"^(?P<name>.+?)-(?:(?P<epoch>[0-9*]+):)?(?P<version>[0-9*][^-:]*)(?:-(?P<release>[^-]+))?$"
)


class Entry(NamedTuple):
    """One line. pattern: of the names that it means; versions: of what they may be, "*" for any.

    excludes: whether it forbids those versions instead.
    """

    line: str
    pattern: str
    versions: str
    excludes: bool

    def means(self, name: str) -> bool:
        """Whether it is about versions of a package; a bare name, as `cuda-toolkit-12-8`, is about none."""
        bare = self.line.strip().lstrip("!")
        return fnmatch.fnmatchcase(name, self.pattern) and not fnmatch.fnmatchcase(name, bare)

    def allows(self, version: str) -> bool:
        """Whether that version of a package it is about may be there."""
        epoch, colon, rest = version.partition(":")
        if not colon:
            epoch, rest = "0", version
        texts = (rest, "%s:%s" % (epoch, rest))
        return self.excludes != any(fnmatch.fnmatchcase(text, self.versions) for text in texts)


def parse(text: str) -> List[Entry]:
    """The entries of a list, comments and empty lines left out."""
    found = []
    for line in text.splitlines():
        words = line.strip()
        if not words or words.startswith("#"):
            continue
        excludes, words = words.startswith("!"), words.lstrip("!")
        entry = _ENTRY.match(words)
        if entry is None:
            found.append(Entry(line, words, "*", excludes))
            continue
        # Without the architecture at the end: "1.el9.x86_64", "1.el9.*"; a release may end with any of both.
        release = re.sub(r"\.(?:\*|noarch|x86_64|aarch64|i686)$", "", entry.group("release") or "*")
        version = "%s-%s" % (entry.group("version"), release)
        if entry.group("epoch"):
            version = "%s:%s" % (entry.group("epoch"), version)
        found.append(Entry(line, entry.group("name"), version, excludes))
    return found


def line(name: str, version: str) -> str:
    """Our entry for a package."""
    return "%s-%s.*" % (name, version if ":" in version else "0:" + version)


class VersionLock:
    """The list on this host. root: prefix of its path."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.settings = configparser.ConfigParser(interpolation=None)
        self.problem: Optional[str] = None
        try:
            self.settings.read_string(read(root + SETTINGS) or "[main]\n")
        except configparser.Error as error:
            self.problem = "%s cannot be read: %s" % (SETTINGS, error)
            # What was read before the mistake is not whole.
            self.settings = configparser.ConfigParser(interpolation=None)
        self.path = root + (self.settings.get("main", "locklist", fallback="") or LIST)
        self.text = read(self.path) or ""

    @property
    def entries(self) -> List[Entry]:
        """As the list is now."""
        return parse(self.text)

    @property
    def off(self) -> Optional[str]:
        """Why the list has no effect, or None."""
        value = self.settings.get("main", "enabled", fallback="1").strip().lower()
        if self.problem is None and value in ("0", "no", "false", "off"):
            return "%s says enabled = %s, so that no lock has any effect: set it to 1" % (SETTINGS, value)
        return self.problem

    def locked(self, packages: Dict[str, Package]) -> List[str]:
        """Names of the installed packages that an entry is about."""
        entries = [entry for entry in self.entries if not entry.excludes]
        return sorted(name for name in packages if any(entry.means(_bare(name)) for entry in entries))

    def allows(self, name: str, version: Optional[str]) -> bool:
        """Whether a package may come to `version` (None: leave), as far as the list is concerned."""
        about = [entry for entry in self.entries if entry.means(_bare(name))]
        locks = [entry for entry in about if not entry.excludes]
        if version is None:
            return not locks
        forbidden = any(entry.excludes and not entry.allows(version) for entry in about)
        return not forbidden and (not locks or any(entry.allows(version) for entry in locks))

    def lock(self, names: Iterable[str], packages: Dict[str, Package]) -> None:
        """Lock packages at the versions that are there, in place of older entries of that form."""
        wanted = [name for name in names if name in packages]
        self.unlock(wanted)
        added = "".join(line(_bare(name), packages[name].version) + "\n" for name in wanted)
        self._write(self.text + ("\n" if self.text and not self.text.endswith("\n") else "") + added)

    def unlock(self, names: Iterable[str]) -> None:
        """Take out the entries that are about one package of these alone."""
        bare = {_bare(name) for name in names}
        kept = [
            text
            for text in self.text.splitlines()
            if not any(entry.pattern in bare and not entry.excludes for entry in parse(text))
        ]
        self._write("".join(text + "\n" for text in kept))

    def _write(self, text: str) -> None:
        if text != self.text:
            write(self.path, text)
            self.text = text


def _bare(name: str) -> str:
    return name[: -len(".i686")] if name.endswith(".i686") else name
