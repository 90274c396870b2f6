"""apt and dpkg on a host: what is installed, what would happen, what went wrong."""

from __future__ import annotations

import os
import re
from typing import Dict, Iterable, List, Optional

from ansible.module_utils.command import Result, run
from ansible.module_utils.packages import Package, Step

#: Locks that apt-get takes, in the order in which it takes them.
LOCKS = (
    "/var/lib/dpkg/lock-frontend",
    "/var/lib/dpkg/lock",
    "/var/lib/apt/lists/lock",
    "/var/cache/apt/archives/lock",
)

#: Nothing asks, nothing restarts services on its own, configuration files of the host are kept.
ENVIRONMENT = {
    "DEBIAN_FRONTEND": "noninteractive",
    "DEBIAN_PRIORITY": "critical",
    "APT_LISTCHANGES_FRONTEND": "none",
    "UCF_FORCE_CONFFOLD": "1",
    "NEEDRESTART_MODE": "l",
    "NEEDRESTART_SUSPEND": "1",
    "PAGER": "cat",
}
OPTIONS = [
    "-o",
    "Dpkg::Options::=--force-confdef",
    "-o",
    "Dpkg::Options::=--force-confold",
    "-o",
    "Dpkg::Use-Pty=0",
    "-o",
    "APT::Color=0",
]


def journal_pending() -> bool:
    """Whether dpkg was cut off so early that only its journal knows; apt then refuses to work."""
    updates = "/var/lib/dpkg/updates"
    return os.path.isdir(updates) and bool(os.listdir(updates))


def environment(proxy: Optional[str] = None) -> Dict[str, str]:
    """Environment of an apt-get call; proxy: URL, or None for the host's own settings."""
    return dict(ENVIRONMENT, **({"http_proxy": proxy, "https_proxy": proxy} if proxy else {}))


def way(proxy: Optional[str]) -> List[str]:
    """Options by which apt heeds the environment's proxy: one in the host's apt.conf would go before it."""
    return ["-o", "Acquire::http::Proxy=", "-o", "Acquire::https::Proxy="] if proxy else []


def installed() -> Dict[str, Package]:
    """Every package that dpkg has files or settings of, by name ("name:arch" for foreign architectures)."""
    cells = "${binary:Package}\t${Version}\t${db:Status-Abbrev}\t${Architecture}\n"
    return parse_installed(run(["dpkg-query", "-W", "-f", cells]).stdout, native())


def healthy(status: str) -> bool:
    """Whether dpkg's three letters (`ii `) say: unpacked, configured and in want of nothing."""
    return status[1:3] in ("i ", "i")


def unfinished(status: str) -> bool:
    """Whether they say that dpkg began something with the package and did not end."""
    return status[1:2] in ("U", "F", "H", "W", "t") or status[2:3] == "R"


def parse_installed(text: str, native_architecture: str) -> Dict[str, Package]:
    """What `installed` asks dpkg-query for, one line a package."""
    packages = {}
    for line in text.splitlines():
        cells = line.split("\t")
        if len(cells) != 4 or cells[2][1:2] in ("n", "c"):
            continue
        # Multi-arch "same" packages are printed with their architecture even when it is the native one.
        name = (
            cells[0]
            if cells[0].count(":") == 0 or cells[3] != native_architecture
            else cells[0].split(":")[0]
        )
        packages[name] = Package(name, cells[1], healthy(cells[2]), unfinished(cells[2]))
    return packages


_native: List[str] = []


def native() -> str:
    """The host's own architecture in dpkg's words (amd64, arm64)."""
    if not _native:
        _native.append(run(["dpkg", "--print-architecture"]).stdout.strip() or "amd64")
    return _native[0]


def holds() -> List[str]:
    """Names of the packages that are on hold."""
    suffix = ":" + native()
    names = run(["apt-mark", "showhold"]).stdout.split()
    return sorted(name[: -len(suffix)] if name.endswith(suffix) else name for name in names)


def automatic() -> List[str]:
    """Names of the packages that came because others need them."""
    suffix = ":" + native()
    names = run(["apt-mark", "showauto"]).stdout.split()
    return [name[: -len(suffix)] if name.endswith(suffix) else name for name in names]


_STEP = re.compile(
    r"^(?P<kind>Inst|Remv|Purg) (?P<name>\S+)(?: \[(?P<old>[^\]]*)\])?(?: \((?P<new>\S+)[^)]*\))?"
)


def parse_simulation(text: str) -> List[Step]:
    """The steps that `apt-get -s` prints; "upgrade" also stands for a downgrade until `mark_downgrades`."""
    steps = []
    for line in text.splitlines():
        found = _STEP.match(line)
        if found is None:
            continue
        old, new = found.group("old"), found.group("new")
        if found.group("kind") == "Inst":
            kind = "install" if old is None else "upgrade"
            if old is not None and old == new:
                continue
            steps.append(Step(kind, found.group("name"), old, new))
        elif not any(step.kind == "remove" and step.name == found.group("name") for step in steps):
            steps.append(Step("remove", found.group("name"), old, None))
    return steps


def older(first: str, second: str) -> bool:
    """Whether version `first` comes before `second` in dpkg's order."""
    return bool(run(["dpkg", "--compare-versions", first, "lt", second]).rc == 0)


def mark_downgrades(steps: List[Step]) -> List[Step]:
    """The same steps, with those to an older version called "downgrade"."""
    return [
        step._replace(kind="downgrade")
        if step.kind == "upgrade" and older(step.new or "", step.old or "")
        else step
        for step in steps
    ]


def available(names: Iterable[str]) -> Dict[str, List[str]]:
    """Versions of each package in the host's sources, newest first; a name without any is absent."""
    wanted = sorted(set(names))
    if not wanted:
        return {}
    return parse_madison(run(["apt-cache", "madison", *wanted]).stdout)


def parse_madison(text: str) -> Dict[str, List[str]]:
    """What `apt-cache madison` prints: "name | version | source", newest first per name."""
    versions: Dict[str, List[str]] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) >= 3 and "Packages" in cells[2] and cells[1] not in versions.setdefault(cells[0], []):
            versions[cells[0]].append(cells[1])
    return {name: found for name, found in versions.items() if found}


def reasons(done: Result, most: int = 12) -> str:
    """What apt or dpkg complained about, without its progress: at most `most` lines."""
    lines = [line.strip() for line in done.text.splitlines()]
    told = [
        line
        for line in lines
        if re.match(r"(E:|W:|dpkg: error|Error|Consult |Sub-process)", line)
        or "Depends:" in line
        or "Conflicts:" in line
        or "Breaks:" in line
        or "but it is not" in line
        or "Unable to" in line
        or "no answer within" in line
    ]
    chosen = told or [line for line in lines if line][-3:]
    if done.rc < 0:
        chosen = ["killed by signal %d" % -done.rc, *chosen]
    unique = list(dict.fromkeys(chosen))
    return "\n".join(unique[:most]) or "exit status %d without a message" % done.rc
