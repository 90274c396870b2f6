"""What a host's package manager knows of driver and containers: packages, holds, and dnf's repositories."""

from __future__ import annotations

import configparser
import glob
import os
from typing import Any, Dict, List

from ansible.module_utils import package_manager
from ansible.module_utils.command import read, run
from ansible.module_utils.packages import Package
from ansible.module_utils.versionlock import VersionLock

#: Names of the packages of driver and containers, as globs.
NAMES = (
    "*nvidia*",
    "libcuda*",
    "cuda-*",
    "docker*",
    "containerd*",
    "dkms",
    "moby-*",
    "libxnvctrl*",
    "podman-docker",
    "runc",
)
#: Those of kernel headers, by manager; with dnf also what SELinux allows containers.
OTHERS = {"apt": ("linux-headers-*",), "dnf": ("kernel-devel*", "container-selinux")}
_DPKG = "${Package}\t${Version}\t${db:Status-Abbrev}\n"
_RPM = "%{NAME}\\t%{EPOCHNUM}:%{VERSION}-%{RELEASE}\\t%{ARCH}\\n"
#: Seconds for one program.
TIMEOUT = 15


def look(root: str = "") -> Dict[str, Any]:
    """All of it, as raw values. root: prefix of the files' paths."""
    manager = package_manager.name(root)
    if manager != "dnf":
        return {
            "packages": _said(["dpkg-query", "-W", "-f", _DPKG, *NAMES, *OTHERS["apt"]]),
            "holds": _said(["apt-mark", "showhold"]),
        }
    rpms = _said(["rpm", "-qa", "--qf", _RPM, *NAMES, *OTHERS["dnf"]])
    return {"rpms": rpms, "locked": _locked(rpms["stdout"], root), "repositories": repositories(root)}


def _said(argv: List[str]) -> Dict[str, Any]:
    answer = run(argv, timeout=TIMEOUT)
    return {"rc": answer.rc, "stdout": answer.stdout, "stderr": answer.stderr}


def _locked(rpms: str, root: str) -> List[str]:
    """Names of the packages that dnf's versionlock is about; none where it is switched off."""
    locks = VersionLock(root)
    rows = [line.split("\t") for line in rpms.splitlines()]
    packages = {cells[0]: Package(cells[0], cells[1]) for cells in rows if len(cells) == 3}
    names: List[str] = [] if locks.off else locks.locked(packages)
    return names


def repositories(root: str = "") -> List[Dict[str, str]]:
    """The enabled repositories of dnf: id, and where their packages come from."""
    found: List[Dict[str, str]] = []
    for path in sorted(glob.glob("%s/etc/yum.repos.d/*.repo" % glob.escape(root))):
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        try:
            parser.read_string(read(path) or "")
        except configparser.Error:
            # dnf leaves such a file out, too, and says so.
            continue
        for name in parser.sections():
            section = parser[name]
            if section.get("enabled", "1").strip().lower() in ("0", "no", "false", "off"):
                continue
            places = (section.get(key, "").strip() for key in ("baseurl", "metalink", "mirrorlist"))
            found.append(
                {
                    "id": name,
                    "from": next((place.split()[0] for place in places if place), ""),
                    "file": os.path.basename(path),
                }
            )
    return found
