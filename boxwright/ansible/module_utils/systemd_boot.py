"""The entry that systemd-boot boots next, where it is what boots this host.

bootctl weighs the firmware's variables (LoaderEntryOneShot, LoaderEntryDefault), the `default` of loader.conf
and the order of the entries as the loader does: https://www.freedesktop.org/software/systemd/man/latest/bootctl.html
("list"). Its JSON is there from release 250 on.
"""

from __future__ import annotations

import json
from typing import Optional

from ansible.module_utils.command import run

#: Which loader has booted this host: https://systemd.io/BOOT_LOADER_INTERFACE/.
LOADER = "/sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
#: Bytes of attributes in front of a firmware's variable, as efivarfs shows it.
ATTRIBUTES = 4


def boots(root: str = "") -> bool:
    """Whether systemd-boot has booted this host; GRUB tells its own name there, or none."""
    try:
        with open(root + LOADER, "rb") as stream:
            value = stream.read(1024)
    except OSError:
        return False
    return value[ATTRIBUTES:].decode("utf-16-le", "replace").startswith("systemd-boot")


def next_release() -> Optional[str]:
    """The kernel's release of the entry that boots next; None where it is no kernel's, or cannot be told."""
    return default_release(run(["bootctl", "list", "--json=short", "--no-pager"], timeout=15).stdout)


def default_release(listing: str) -> Optional[str]:
    """The version of the default entry in the JSON of `bootctl list`; None where there is none."""
    try:
        entries = json.loads(listing)
    except (ValueError, RecursionError):
        return None
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("isDefault") is True:
            version = entry.get("version")
            return version if isinstance(version, str) else None
    return None
