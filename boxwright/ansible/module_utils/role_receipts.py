"""What a role's last whole run left on a host: how it was declared, and the state that it then saw.

A later run that is declared the same, on a host that still looks the same, need not visit the role. The
receipt holds salted hashes of the declaration, so that it tells nobody a secret; comparing is done on the
host, and only names and words leave it.
"""

from __future__ import annotations

import fnmatch
import glob
import hashlib
import json
import os
import re
import secrets
from typing import Any, Dict, List, Optional

from ansible.module_utils import file_state, package_manager
from ansible.module_utils.command import run
from ansible.module_utils.packages import Package
from ansible.module_utils.versionlock import VersionLock

#: Version of a receipt's form; one of another form counts as none.
FORMAT = 1
#: The most files that one pattern may name; a pattern of ours that names more is a mistake.
MOST_FILES = 2000
#: Seconds for the package manager, and for systemd, to tell what they have.
COMMAND_TIMEOUT = 30
ROLE = re.compile(r"[a-z][a-z0-9_]{0,60}")
GONE = "gone"
#: What could not be told counts as no state: two of them are not the same.
UNKNOWN = "unknown"


def path_of(config_dir: str, role: str) -> str:
    """Where a role's receipt lies. Raises ValueError for what is no role's name."""
    if not ROLE.fullmatch(role):
        raise ValueError("%r is no role's name" % role)
    return os.path.join(config_dir, "receipts", role + ".json")


def read(config_dir: str, role: str) -> Optional[Dict[str, Any]]:
    """A role's receipt; None where there is none that can be understood."""
    try:
        with open(path_of(config_dir, role), encoding="utf-8") as stream:
            value = json.load(stream)
    except (OSError, ValueError):
        return None
    known = isinstance(value, dict) and value.get("format") == FORMAT and isinstance(value.get("salt"), str)
    parts = ("declared", "watch", "seen")
    return value if known and all(isinstance(value.get(part), dict) for part in parts) else None


def write(config_dir: str, declared: Dict[str, Dict[str, str]], watches: Dict[str, Any]) -> int:
    """Record the state as it is now; how many subjects were looked at. Only root reads the receipts.

    declared: role -> variable -> sha256. watches: role -> what it watches. Raises OSError.
    """
    observer, count = Observer(list(watches.values())), 0
    for role, watch in sorted(watches.items()):
        salt, seen = secrets.token_hex(16), observer.observe(watch)
        receipt = {
            "format": FORMAT,
            "salt": salt,
            "declared": {name: _salted(salt, value) for name, value in declared.get(role, {}).items()},
            "watch": watch,
            "seen": seen,
        }
        path = path_of(config_dir, role)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        new = path + ".new"
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump(receipt, stream, indent=1, sort_keys=True)
            stream.flush()
            os.fsync(stream.fileno())
        os.rename(new, path)
        count += len(seen)
    return count


def remove(config_dir: str, role: str) -> bool:
    """Forget a role's receipt; whether there was one. Raises OSError."""
    try:
        os.remove(path_of(config_dir, role))
    except FileNotFoundError:
        return False
    return True


def compared(config_dir: str, declared: Dict[str, Dict[str, str]]) -> Dict[str, Any]:
    """Role -> what differs from its receipt, for the roles that have one.

    differs: variables declared otherwise than then. drift: subjects of the host with what they were and are.
    """
    receipts = {role: read(config_dir, role) for role in declared}
    there = {role: receipt for role, receipt in receipts.items() if receipt}
    observer = Observer([receipt["watch"] for receipt in there.values()])
    return {
        role: {
            "differs": _differs(receipt, declared[role]),
            "drift": _drift(receipt["seen"], observer.observe(receipt["watch"])),
        }
        for role, receipt in there.items()
    }


class Observer:
    """Looks at what several roles watch, asking package manager and systemd once for all of them.

    A watch has lists of patterns. files: paths of the role's own (`**` for whole trees). beside: paths of
    somebody else's, which matter to the role and are not its to mend. listings: paths of which only the names
    matter. packages: names, with `!` for those that are not meant. units: names of systemd's.
    """

    def __init__(self, watches: List[Dict[str, Any]]) -> None:
        self._packages = installed() if any(_texts(watch, "packages") for watch in watches) else {}
        names = sorted({name for watch in watches for name in _texts(watch, "units")})
        self._units = units(names) if names else {}

    def observe(self, watch: Dict[str, Any]) -> Dict[str, str]:
        """The state of what one role watches: subject -> its state, as words that differ when it does."""
        seen = {}
        for kind in ("file", "beside"):
            for pattern in _texts(watch, "files" if kind == "file" else kind):
                for path in sorted(glob.glob(pattern, recursive=True))[:MOST_FILES]:
                    state = file_state.state(path)
                    if state:
                        seen["%s %s" % (kind, path)] = state
        for pattern in _texts(watch, "listings"):
            names = sorted(os.path.basename(path) for path in glob.glob(pattern))[:MOST_FILES]
            seen["list " + pattern] = " ".join(names)
        patterns = _texts(watch, "packages")
        for name, state in self._packages.items():
            if _meant(name, patterns):
                seen["package " + name] = state
        for name in _texts(watch, "units"):
            seen["unit " + name] = self._units.get(name, UNKNOWN)
        return seen


def installed() -> Dict[str, str]:
    """Every installed package -> version, with `held` where the package manager keeps it so."""
    return _rpms() if package_manager.name() == "dnf" else _debs()


def _debs() -> Dict[str, str]:
    form = "${Package}\t${Version}\t${db:Status-Abbrev}\n"
    answer = run(["dpkg-query", "-W", "-f", form], timeout=COMMAND_TIMEOUT)
    found: Dict[str, str] = {}
    if answer.rc == 0:
        for line in answer.stdout.splitlines():
            name, version, status = [*line.split("\t"), "", ""][:3]
            if status[1:2] not in ("n", "c", ""):
                words = [version]
                if status.startswith("h"):
                    words.append("held")
                if status[1:2] != "i" or status[2:3].strip():
                    words.append("broken")
                # A library may be there for several architectures.
                found[name] = " ".join(filter(None, [found.get(name, ""), *words]))
    return found


def _rpms() -> Dict[str, str]:
    form = "%{NAME}\t%{EPOCHNUM}:%{VERSION}-%{RELEASE}\n"
    answer = run(["rpm", "-qa", "--qf", form], timeout=COMMAND_TIMEOUT)
    found: Dict[str, str] = {}
    for line in answer.stdout.splitlines() if answer.rc == 0 else ():
        name, _, version = line.partition("\t")
        # A kernel's packages are there several times.
        found[name] = " ".join(sorted(filter(None, [found.get(name, ""), version])))
    locks = VersionLock("")
    for name in [] if locks.off else locks.locked({name: Package(name, found[name]) for name in found}):
        found[name] += " held"
    return found


def units(names: List[str]) -> Dict[str, str]:
    """Unit -> `active, enabled`, and what else there is to say of it."""
    properties = "--property=Id,LoadState,ActiveState,UnitFileState,NeedDaemonReload"
    answer = run(["systemctl", "show", properties, "--", *names], timeout=COMMAND_TIMEOUT)
    found = {}
    for block in answer.stdout.strip().split("\n\n"):
        told = dict(line.partition("=")[::2] for line in block.splitlines())
        words = [told.get("ActiveState", ""), told.get("UnitFileState", "")]
        if told.get("LoadState") != "loaded":
            words.append(told.get("LoadState", ""))
        if told.get("NeedDaemonReload") == "yes":
            words.append("edited since it was read")
        found[told.get("Id", "")] = ", ".join(filter(None, words))
    return found


def _texts(watch: Dict[str, Any], key: str) -> List[str]:
    value = watch.get(key)
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _meant(name: str, patterns: List[str]) -> bool:
    if any(one.startswith("!") and fnmatch.fnmatchcase(name, one[1:]) for one in patterns):
        return False
    return any(fnmatch.fnmatchcase(name, one) for one in patterns if not one.startswith("!"))


def _salted(salt: str, value: str) -> str:
    return hashlib.sha256((salt + value).encode()).hexdigest()


def _differs(receipt: Dict[str, Any], declared: Dict[str, str]) -> List[str]:
    then, salt = receipt["declared"], receipt["salt"]
    now = {name: _salted(salt, value) for name, value in declared.items()}
    return sorted(name for name in set(then) | set(now) if then.get(name) != now.get(name))


def _drift(then: Dict[str, str], now: Dict[str, str]) -> List[Dict[str, str]]:
    """What differs, in words; the hash of a file is nobody's business."""
    found = []
    for subject in sorted(set(then) | set(now)):
        was, is_now = then.get(subject), now.get(subject)
        if was == is_now != UNKNOWN:
            continue
        kind, _, name = subject.partition(" ")
        if kind in ("file", "beside"):
            is_now = GONE if is_now is None else "edited" if was else "new"
            was = "as it was left" if was else GONE
        found.append({"kind": kind, "subject": name, "was": was or GONE, "now": is_now or GONE})
    return found
