"""The Python by which modules run on a host: whether there is one that will do, and how a host gets it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: The distribution's own, whatever comes first on anybody's PATH.
PYTHON = "/usr/bin/python3"
LEAST = (3, 9)
#: Never reached through a proxy, as in module_utils/way_out.py.
LOOPBACK = ("localhost", "127.0.0.1", "::1")
#: Seconds for apt or dnf to install it, for a lock of theirs to be given up, and for a look.
INSTALL_S, LOCK_S = 900, 300
_SUSPICIOUS = re.compile(
    r"interpreter|minimum of Python|Python 3\.\d+ or newer|No module named|SyntaxError|No start of json|"
    r"\bpython3?\S*: .*not found|MODULE FAILURE"
)


@dataclass(frozen=True)
class Found:
    """What a host has. version: None without Python. problem: why it does not run. clock: seconds."""

    version: tuple[int, int] | None = None
    problem: str = ""
    installer: str = ""
    clock: int | None = None


def suspected(result: Mapping[str, Any]) -> bool:
    """Whether a module's failure looks as if Python was to blame."""
    said = " ".join(str(result.get(key) or "") for key in ("msg", "module_stderr", "module_stdout"))
    return bool(result.get("failed")) and bool(_SUSPICIOUS.search(said))


def look(python: str = PYTHON) -> str:
    """A shell script that tells about a host's Python, its installer of packages, and its clock."""
    ask = "import sys; print('python', *sys.version_info[:2])"
    return (
        f"if [ -e {shlex.quote(python)} ]; then"
        f" {shlex.quote(python)} -I -c {shlex.quote(ask)} 2>&1 || echo broken;"
        " else echo absent; fi\n"
        "date +'clock %s'\n"
        "for one in apt-get dnf; do command -v $one >/dev/null 2>&1 && echo installer $one && break; done\n"
        "exit 0\n"
    )


def read(text: str) -> Found | None:
    """What the script of `look` said; None where it was not let run (sudo spoke, or the connection did)."""
    version = re.search(r"^python (\d+) (\d+)$", text, re.MULTILINE)
    installer = re.search(r"^installer (\S+)$", text, re.MULTILINE)
    clock = re.search(r"^clock (\d+)$", text, re.MULTILINE)
    if clock is None:
        return None
    lines = [line for line in text.splitlines() if line and not line.startswith(("clock", "installer"))]
    broken = "broken" in lines
    return Found(
        (int(version[1]), int(version[2])) if version and not broken else None,
        next((line for line in reversed(lines) if line != "broken"), "it does not run") if broken else "",
        installer[1] if installer else "",
        int(clock[1]),
    )


def install(installer: str, proxy: str = "", no_proxy: Sequence[str] = ()) -> str:
    """A shell script that installs Python; it is sent as input: no list of processes shows the proxy."""
    way = {"http_proxy": proxy, "https_proxy": proxy, "no_proxy": ",".join([*LOOPBACK, *no_proxy])}
    lines = [f"export {name}={shlex.quote(text)}" for name, text in way.items() if proxy]
    if installer == "apt-get":
        get = f"apt-get -q -y -o DPkg::Lock::Timeout={LOCK_S} -o APT::Update::Error-Mode=any"
        # One in the host's apt.conf would go before the environment's, as in module_utils/apt.py.
        get += " -o Acquire::http::Proxy= -o Acquire::https::Proxy=" if proxy else ""
        lines += [
            "export DEBIAN_FRONTEND=noninteractive",
            f"timeout {INSTALL_S} {get} update &&",
            f"timeout {INSTALL_S} {get} install --no-install-recommends python3",
        ]
    else:
        lines += [f"timeout {INSTALL_S} {installer} -q -y install python3"]
    return "\n".join(lines) + "\n"


def complaint(found: Found, python: str = PYTHON) -> str | None:
    """Why modules cannot run with what was found, and what to do; None where Python is not to blame."""
    least = ".".join(map(str, LEAST))
    if found.problem:
        back = (
            "dnf reinstall python3"
            if found.installer == "dnf"
            else ("apt-get install --reinstall python3-minimal python3")
        )
        return f"{python} is there and does not run: {found.problem}\nPut the distribution's own back: {back}"
    if found.version is None:
        if python != PYTHON:
            return f"there is no Python at {python}, which ansible_python_interpreter names: leave that out"
        get = f"{found.installer or 'apt-get'} install python3"
        return f"there is no Python on the box ({python}). As root there: {get}"
    if found.version < LEAST:
        return (
            f"{python} is Python {'.'.join(map(str, found.version))}, and {least} is the oldest that "
            "will do. Debian 12, Ubuntu 22.04 and RHEL 9 bring it: install one of these, or a later one."
        )
    return None
