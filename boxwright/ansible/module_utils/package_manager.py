"""Which package manager a host has."""

from __future__ import annotations

import re
import shutil

from ansible.module_utils.command import read

#: Families of distributions (ID and ID_LIKE of /etc/os-release), and their managers.
FAMILIES = {"debian": "apt", "ubuntu": "apt", "rhel": "dnf", "centos": "dnf", "fedora": "dnf"}


def name(root: str = "") -> str:
    """`apt` or `dnf`: by the distribution, else by what is installed; "" where neither is."""
    release = read(root + "/etc/os-release") or ""
    for field in ("ID", "ID_LIKE"):
        found = re.search(r"^%s=[\"']?([^\"'\n]*)" % field, release, re.MULTILINE)
        for word in found.group(1).split() if found else []:
            if word in FAMILIES:
                return FAMILIES[word]
    return next((one for one, program in (("apt", "apt-get"), ("dnf", "dnf")) if shutil.which(program)), "")
