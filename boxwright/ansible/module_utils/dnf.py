"""dnf 4 and rpm on a host: what is installed, what would happen, which streams there are, what went wrong."""

from __future__ import annotations

import os
import re
from typing import Dict, Iterable, List, NamedTuple, Optional, Tuple

from ansible.module_utils.command import Result, read, run
from ansible.module_utils.package_locks import lock_holder
from ansible.module_utils.packages import Package, Step

#: Files of dnf's that hold the number of the process that works, and rpm's own lock.
LOCKS = (
    "/var/lib/dnf/rpmdb_lock.pid",
    "/var/cache/dnf/metadata_lock.pid",
    "/var/cache/dnf/download_lock.pid",
    "/var/lib/rpm/.rpm.lock",
)
#: One transaction that does what is said: no weak guesses, no second thoughts about what else is unneeded.
OPTIONS = [
    "--best",
    "--allowerasing",
    "--color=never",
    # The locks of others are judged by what the simulation says; ours would be in our own way.
    "--disableplugin=versionlock",
    "--setopt=module_stream_switch=1",
    "--setopt=installonly_limit=0",
]
_INSTALLED = "%{NAME}\\t%{EPOCHNUM}:%{VERSION}-%{RELEASE}\\t%{ARCH}\\n"
_AVAILABLE = "%{name}\\t%{epoch}:%{version}-%{release}"


def plain(version: str) -> str:
    """A version without an epoch of nought: `580.105.08-1.el9` of `0:580.105.08-1.el9`."""
    return version[2:] if version.startswith("0:") else version


def installed() -> Dict[str, Package]:
    """Every installed package by name ("name.arch" for foreign architectures)."""
    packages = parse_installed(run(["rpm", "-qa", "--qf", _INSTALLED]).stdout, os.uname().machine)
    doubled = [name for name, package in packages.items() if package.others]
    several = _meant_to_be_several(doubled)
    return {
        # An upgrade that was cut off has left the old version beside the new one.
        name: package._replace(unfinished=name in doubled and name not in several)
        for name, package in packages.items()
    }


def _meant_to_be_several(names: List[str]) -> List[str]:
    """Those of the packages of which rpm keeps several versions, such as kernels."""
    marked = ("installonlypkg(", "multiversion(", "kernel")
    return [
        name
        for name in names
        if any(line.startswith(marked) for line in run(["rpm", "-q", "--provides", name]).stdout.splitlines())
    ]


def parse_installed(text: str, architecture: str) -> Dict[str, Package]:
    """What `installed` asks rpm for, one line a package; the newest version of a name counts."""
    found: Dict[str, List[str]] = {}
    for line in text.splitlines():
        cells = line.split("\t")
        if len(cells) != 3 or cells[0] == "gpg-pubkey":
            continue
        native = cells[2] in ("noarch", architecture)
        found.setdefault(cells[0] if native else "%s.%s" % (cells[0], cells[2]), []).append(plain(cells[1]))
    packages = {}
    for name, versions in found.items():
        ordered = newest_first(versions)
        packages[name] = Package(name, ordered[0], others=tuple(ordered[1:]))
    return packages


_PART = re.compile(r"\d+|[A-Za-z]+|~|\^")


def _key(text: str) -> Tuple[Tuple[int, int, str], ...]:
    """Sorts as rpm compares: `~` before the end, the end before all else, letters before numbers.

    A caret comes after the end and before everything else.
    """
    parts: List[Tuple[int, int, str]] = []
    for part in _PART.findall(text):
        if part == "~":
            parts.append((-1, 0, ""))
        elif part == "^":
            parts.append((1, 0, ""))
        elif part.isdigit():
            parts.append((3, int(part), ""))
        else:
            parts.append((2, 0, part))
    return (*parts, (0, 0, ""))


def order(version: str) -> Tuple[int, Tuple[Tuple[int, int, str], ...], Tuple[Tuple[int, int, str], ...]]:
    """A sort key for `[epoch:]version-release`, in rpm's order."""
    epoch, colon, rest = version.partition(":")
    if not colon:
        epoch, rest = "0", version
    upstream, _, release = rest.partition("-")
    return int(epoch) if epoch.isdigit() else 0, _key(upstream), _key(release)


def newest_first(versions: Iterable[str]) -> List[str]:
    """The versions once each, in falling order."""
    return sorted(set(versions), key=order, reverse=True)


def available(names: Iterable[str], options: List[str], env: Dict[str, str]) -> Dict[str, List[str]]:
    """Versions of each package in the host's sources, newest first; a name without any is absent."""
    wanted = sorted(set(names))
    if not wanted:
        return {}
    argv = ["dnf", "-q", "--disableplugin=versionlock", *options, "repoquery", "--showduplicates"]
    argv += ["--arch", "noarch,%s" % os.uname().machine, "--qf", _AVAILABLE, *wanted]
    return parse_available(run(argv, timeout=300, env=env).stdout)


def parse_available(text: str) -> Dict[str, List[str]]:
    """What `available` asks dnf for: "name<TAB>epoch:version-release"."""
    found: Dict[str, List[str]] = {}
    for line in text.splitlines():
        name, tab, version = line.strip().partition("\t")
        if tab:
            found.setdefault(name, []).append(plain(version))
    return {name: newest_first(versions) for name, versions in found.items()}


class Simulation(NamedTuple):
    """A transaction as dnf shows it. problems: what it says against it."""

    steps: List[Step]
    problems: List[str]


_SECTIONS = (
    ("Install", "install"),
    ("Upgrad", "upgrade"),
    ("Downgrad", "downgrade"),
    ("Reinstall", "reinstall"),
    ("Remov", "remove"),
)
_STREAMS = re.compile(r"^(?:Enabling|Switching) module streams:$")
_TABLE = re.compile(r"^={20,}$")
_REPLACING = re.compile(r"^\s+replacing\s+(\S+)\.(\S+) (\S+)$")
_COUNT = re.compile(r"^(Install|Upgrade|Downgrade|Reinstall|Remove)\s+(\d+) Packages?$")


def parse_transaction(done: Result, packages: Dict[str, Package]) -> Simulation:
    """The table that dnf prints before it asks; packages: what is installed.

    Its rows are counted against its own summary, so that none is lost unseen.
    """
    rows_found: List[_Row] = []
    counted: Dict[str, int] = {}
    section, ruled = "", 0
    for line in done.stdout.splitlines():
        if _TABLE.match(line):
            ruled += 1
            continue
        count = _COUNT.match(line)
        if count:
            counted[count.group(1).lower()] = int(count.group(2))
        if ruled != 2 or not line.strip():
            section = "" if not line.strip() else section
            continue
        if not line.startswith(" "):
            heading = next((kind for start, kind in _SECTIONS if line.startswith(start)), "other")
            section = "stream" if _STREAMS.match(line) else heading
            continue
        rows_found += _row(line, section, packages)
    problems = complaints(done)
    for kind, number in counted.items():
        rows = sum(row.kind == kind and not row.replaced for row in rows_found)
        if rows != number:
            problems.append("dnf's table has %d packages to %s, its summary %d" % (rows, kind, number))
    return Simulation([row.step for row in rows_found if row.kind != "reinstall"], problems)


class _Row(NamedTuple):
    kind: str
    step: Step
    replaced: bool = False


def _row(line: str, section: str, packages: Dict[str, Package]) -> List[_Row]:
    replaced = _REPLACING.match(line)
    if replaced:
        return [_Row("remove", Step("remove", replaced.group(1), plain(replaced.group(3)), None), True)]
    cells = line.split()
    if section == "stream":
        old, new = (cells[1], cells[3]) if len(cells) == 4 else (None, cells[1] if len(cells) > 1 else None)
        return [_Row("stream", Step("stream", cells[0], old, new))]
    if section in ("", "other") or len(cells) < 4:
        return []
    name, version = cells[0], plain(cells[2])
    if cells[1] not in ("noarch", os.uname().machine):
        name = "%s.%s" % (name, cells[1])
    old = packages[name].version if name in packages else None
    if section == "install":
        old = None
    return [_Row(section, Step(section, name, old, None if section == "remove" else version))]


_AGAINST = re.compile(
    r"(No match for argument|Unable to (find|resolve)|Error:|All matches were filtered|Problem|"
    r"Cannot |GPG check FAILED|Failed|It is not possible|no such|terminate called|\[Errno|Curl error)",
    re.IGNORECASE,
)
_ASIDE = re.compile(r"(Error: Operation aborted|Transaction (check|test) succeeded|Failed to set locale)")


def complaints(done: Result) -> List[str]:
    """What dnf said against the call. `dnf shell` goes on after an error, and ends with 0."""
    lines = [line.rstrip() for line in (done.stdout + "\n" + done.stderr).splitlines()]
    found, inside = [], False
    for line in lines:
        # The reasons of a problem are indented below it.
        inside = (inside and line.startswith(" ")) or (
            _AGAINST.search(line) is not None and _ASIDE.search(line) is None
        )
        if inside and line.strip():
            found.append(line.strip())
    if done.rc not in (0, 1) and not found:
        found = [line.strip() for line in lines if line.strip()][-3:]
    return list(dict.fromkeys(found))


def reasons(done: Result, most: int = 12) -> str:
    """Why a call failed, at most `most` lines."""
    found = complaints(done) or [line.strip() for line in done.text.splitlines() if line.strip()][-3:]
    if done.rc < 0:
        found = ["killed by signal %d" % -done.rc, *found]
    return "\n".join(found[:most]) or "exit status %d without a message" % done.rc


def parse_streams(text: str, module: str) -> List[str]:
    """The streams of a module that `dnf module list` names."""
    rows = [line.split() for line in text.splitlines()]
    return list(dict.fromkeys(row[1] for row in rows if len(row) > 1 and row[0] == module))


def enabled_stream(text: Optional[str]) -> Optional[str]:
    """The stream that a file of /etc/dnf/modules.d enables, or None."""
    values = dict(line.partition("=")[::2] for line in (text or "").splitlines())
    return values.get("stream") or None if values.get("state") == "enabled" else None


def holder(path: str) -> Optional[int]:
    """The process that holds dnf's or rpm's lock at `path`, or None if it is free."""
    if not path.endswith(".pid"):
        pid: Optional[int] = lock_holder(path)
        return pid
    text = (read(path) or "").strip()
    # dnf itself takes the lock of a process that is gone.
    return int(text) if text.isdigit() and os.path.isdir("/proc/%s" % text) else None
