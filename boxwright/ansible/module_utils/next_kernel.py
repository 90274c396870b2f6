"""The kernel that a host boots next, which is not always the newest one."""

from __future__ import annotations

import os
import re
from typing import List, Optional, Tuple

from ansible.module_utils import grub_menu, systemd_boot
from ansible.module_utils.command import run

#: Copies of an image that nobody boots: of `make install`, of package managers, of editors.
_COPY = re.compile(r"(?:\.(?:old|bak|orig|signed|dpkg-\w+|rpm(?:new|save|orig))|~)$")
_PART = re.compile(r"\d+|[a-z]+|~", re.IGNORECASE)
#: What comes before the release that it is of: 6.12-rc3 before 6.12.
_BEFORE = ("rc", "alpha", "beta", "pre", "~")


def order(name: str) -> List[Tuple[int, int, str]]:
    """Sorts releases of kernels: numbers as numbers, after words; candidates before what they become."""
    parts = [
        (2, int(part), "") if part.isdigit() else (-1 if part.lower() in _BEFORE else 1, 0, part)
        for part in _PART.findall(name)
    ]
    return [*parts, (0, 0, "")]


def newest_first(names: List[str]) -> List[str]:
    """Releases in falling order."""
    return sorted(names, key=order, reverse=True)


def named(root: str = "") -> str:
    """The release of the kernel that the host boots next.

    As bootctl says where systemd-boot boots; as GRUB's menu and its environment block say, on Red Hat's
    family as grubby reads them; else the newest of /boot; the running one where none is known.
    """
    boot = "%s/boot" % root
    names = os.listdir(boot) if os.path.isdir(boot) else []
    # Red Hat's family has a rescue image beside them, named after the machine.
    kernels = [
        name[len("vmlinuz-") :]
        for name in names
        if name.startswith("vmlinuz-") and not name.startswith("vmlinuz-0-rescue-") and not _COPY.search(name)
    ]
    told = systemd_boot.next_release() if systemd_boot.boots(root) else _of_grub(root)
    return told if told in kernels else [*newest_first(kernels), os.uname().release][0]


def _of_grub(root: str) -> Optional[str]:
    default = run(["grubby", "--default-kernel"], timeout=15).stdout.strip()
    image = grub_menu.next_image(root, newest_first, default if release(default) else "")
    return release(_followed(image, root)) if image else None


def _followed(image: str, root: str) -> str:
    """A path of an image without links: Debian's /vmlinuz names the newest one."""
    for place in ("", "/boot"):
        path = "%s%s%s" % (root, place, image)
        if os.path.islink(path):
            return os.path.realpath(path)
    return image


def release(path: str) -> Optional[str]:
    """The release that an image is named after: of `/boot/vmlinuz-5.14.0-570.12.1.el9_6.x86_64`."""
    found = re.fullmatch(r"(?:\S*/)?vmlinuz-(\S+)", path)
    return found.group(1) if found else None
