"""Which loading of the NVIDIA driver this is: what was set on the cards lasts as long as it does."""

from __future__ import annotations

import os

from ansible.module_utils.command import read

BOOT_ID, MODULE = "/proc/sys/kernel/random/boot_id", "/sys/module/nvidia"


def identity() -> str:
    """The boot, and the module's inode in sysfs, which is another one each time that the module is loaded.

    Its times would not do: sysfs gives those of the first look. The role's gpu-tuning.py keeps the same text
    in its receipts.
    """
    try:
        inode = os.stat(MODULE).st_ino
    except OSError:
        inode = 0
    return "%s:%d" % ((read(BOOT_ID) or "").strip(), inode)
