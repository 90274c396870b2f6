"""What the firmware tells of Secure Boot: an EFI variable, as efivarfs shows it."""

from __future__ import annotations

import os
import shutil

from .. import faults, files, paths

DIRECTORY = paths.at("/sys/firmware/efi")
#: The variable's name with the GUID of global variables (UEFI specification, section 3.3).
SECURE_BOOT = os.path.join(DIRECTORY, "efivars", "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c")
#: Attributes of the variable: it is there at boot and at run time.
ATTRIBUTES = bytes([6, 0, 0, 0])


def show() -> None:
    """Write the variable for the faults now in force; a machine without EFI has no such directory."""
    if os.path.isdir(DIRECTORY):
        shutil.rmtree(DIRECTORY)
    if not faults.active("no-efi"):
        files.write_bytes(SECURE_BOOT, ATTRIBUTES + bytes([faults.active("secure-boot")]))
