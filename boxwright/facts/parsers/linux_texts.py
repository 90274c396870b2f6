"""Texts of a Linux host: os-release, /proc, dpkg, rpm, ss, kernel modules."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any, Dict, List, NamedTuple, Optional, Tuple


class Socket(NamedTuple):
    """A listening TCP socket. process: None when the kernel does not tell."""

    address: str
    port: int
    process: Optional[str]


def os_release(text: str) -> Dict[str, str]:
    """The assignments of /etc/os-release, unquoted; a line that is none is left out."""
    found: Dict[str, str] = {}
    for line in text.splitlines():
        name, equals, quoted = line.strip().partition("=")
        if not equals or name.startswith("#"):
            continue
        try:
            found[name] = "".join(shlex.split(quoted))
        except ValueError:
            found[name] = quoted.strip("'\"")
    return found


def meminfo(text: str) -> Dict[str, int]:
    """/proc/meminfo in bytes (the kernel says kB and means KiB)."""
    found = re.findall(r"^(\w+(?:\(\w+\))?):\s+(\d{1,15})(?: kB)?\s*$", text, re.M)
    return {name: int(size) * 1024 for name, size in found}


def packages(text: str) -> Dict[str, str]:
    """Lines `name<TAB>version<TAB>status` of dpkg-query: name -> version of those that are installed.

    status is `${db:Status-Abbrev}`: its second letter is i (installed), t or W (waiting for triggers).
    """
    found: Dict[str, str] = {}
    for line in text.splitlines():
        cells = line.split("\t")
        if len(cells) == 3 and cells[1] and cells[2][1:2] in ("i", "t", "W"):
            found[cells[0].split(":")[0]] = cells[1]
    return found


def rpms(text: str) -> Dict[str, str]:
    """Lines `name<TAB>epoch:version-release<TAB>architecture` of rpm: name -> its newest version.

    An epoch of nought is left out. Of another architecture than the host's there are libraries only, whose
    version is that of the host's own.
    """
    found: Dict[str, str] = {}
    for line in text.splitlines():
        cells = line.split("\t")
        if len(cells) != 3 or not cells[1]:
            continue
        version = cells[1][2:] if cells[1].startswith("0:") else cells[1]
        there = found.get(cells[0])
        if there is None or _numbers(version) > _numbers(there):
            found[cells[0]] = version
    return found


def _numbers(version: str) -> List[int]:
    return [int(part) for part in re.findall(r"\d{1,18}", version)]


def held(text: str) -> List[str]:
    """The names of those lines of dpkg-query whose status says that they are held (its first letter is h)."""
    rows = (line.split("\t") for line in text.splitlines())
    return [cells[0].split(":")[0] for cells in rows if len(cells) == 3 and cells[2].startswith("h")]


def upstream(version: str) -> str:
    """The upstream part of a package's version: `580.105.08` of `1:580.105.08-1`, `3:580.105.08-1.el9`."""
    return version.rpartition(":")[2].rpartition("-")[0] or version.rpartition(":")[2]


def names(text: str) -> List[str]:
    """One name a line, without the architecture (apt-mark showhold)."""
    return [line.strip().split(":")[0] for line in text.splitlines() if line.strip()]


def sockets(text: str) -> List[Socket]:
    """The output of `ss -Hltnp`."""
    found: List[Socket] = []
    for line in text.splitlines():
        cells = line.split()
        if len(cells) < 4 or cells[0] != "LISTEN":
            continue
        address, _, port = cells[3].rpartition(":")
        if not re.fullmatch(r"[0-9]{1,5}", port):
            continue
        process = re.search(r'users:\(\("([^"]*)"', line)
        bare = address.strip("[]").split("%")[0] or "*"
        found.append(Socket(bare, int(port), process.group(1) if process else None))
    return found


def addresses(addresses_json: str, routes_json: str) -> Tuple[str, ...]:
    """The host's own addresses of `ip -j address`, the default route's first, IPv4 before IPv6."""
    devices = [route.get("dev") for route in _objects(routes_json)]
    found = []
    for link in _objects(addresses_json):
        name = str(link.get("ifname", ""))
        if name.startswith(("docker", "br-", "veth", "virbr")):
            continue
        place = devices.index(name) if name in devices else len(devices)
        for entry in _list(link.get("addr_info")):
            if entry.get("scope") == "global" and entry.get("local"):
                found.append((place, entry.get("family") != "inet", str(entry["local"])))
    return tuple(address for _, _, address in sorted(found, key=lambda one: one[:2]))


def _objects(text: str) -> List[Dict[str, Any]]:
    try:
        return _list(json.loads(text))
    except (ValueError, RecursionError):
        return []


def _list(found: Any) -> List[Dict[str, Any]]:
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def kernel_module(text: str) -> Dict[str, str]:
    """The `name: value` lines of modinfo (the first of each name)."""
    found: Dict[str, str] = {}
    for line in text.splitlines():
        name, colon, rest = line.partition(":")
        if colon:
            found.setdefault(name.strip(), rest.strip())
    return found


def loaded_driver(text: str) -> Tuple[Optional[str], Optional[str]]:
    """Version and flavor (`open`, `proprietary`) of /proc/driver/nvidia/version."""
    line = next((line for line in text.splitlines() if line.startswith("NVRM version:")), "")
    found = re.search(r"\s(\d+\.\d+(?:\.\d+)?)\s", line + " ")
    if not found:
        return None, None
    return found.group(1), "open" if "Open Kernel Module" in line else "proprietary"


def module_flavor(license_text: str) -> Optional[str]:
    """`open` for the license `Dual MIT/GPL`, `proprietary` for `NVIDIA`."""
    text = license_text.strip()
    if not text:
        return None
    return "open" if "GPL" in text or "MIT" in text else "proprietary"


def secure_boot(efi_variable: Optional[str], mokutil: str) -> Optional[bool]:
    """Whether the firmware checks signatures.

    efi_variable: hex of the EFI variable SecureBoot. mokutil: output of `mokutil --sb-state`.
    A machine without EFI has no Secure Boot. None: neither could be read on a machine that has EFI. Where
    shim is told not to check, the kernel does not either, whatever the firmware says.
    """
    text = mokutil.lower()
    if "validation is disabled in shim" in text:
        return False
    if efi_variable is not None and len(efi_variable) >= 2:
        return efi_variable[-2:] == "01"
    if "secureboot enabled" in text:
        return "setup mode" not in text
    if "secureboot disabled" in text or "efi variables are not supported" in text:
        return False
    return None


#: What `mokutil --test-key` says of a key, and what it means; its exit status differs between versions.
_KEY_STATES = (
    (" is blocked", "blocked"),
    ("already in the enrollment request", "pending"),
    ("is not enrolled", "not-enrolled"),
    ("is already enrolled", "enrolled"),
    ("is already in db", "enrolled"),
    ("already in the built-in trusted keyring", "enrolled"),
)


def key_state(text: str) -> Optional[str]:
    """`enrolled`, `pending`, `blocked` or `not-enrolled` of what `mokutil --test-key` said; None for else."""
    return next((state for words, state in _KEY_STATES if words in text), None)
