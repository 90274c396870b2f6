"""The key that DKMS signs kernel modules with, and whether the firmware takes it.

As https://github.com/dkms-project/dkms (dkms.in: prepare_mok, read_framework_conf) chooses it.
"""

from __future__ import annotations

import glob
import os
import re
from typing import Dict, List, Optional

from ansible.module_utils import host_reading, linux_texts
from ansible.module_utils.command import run

CONFIGURATION = ("/etc/dkms/framework.conf", "/etc/dkms/framework.conf.d/*.conf")
#: Key and certificate: DKMS's own, and those that Ubuntu's update-secureboot-policy makes.
OWN = ("/var/lib/dkms/mok.key", "/var/lib/dkms/mok.pub")
UBUNTU = ("/var/lib/shim-signed/mok/MOK.priv", "/var/lib/shim-signed/mok/MOK.der")
EFI = "/sys/firmware/efi"
_SETTING = re.compile(
    r"^\s*(mok_signing_key|mok_certificate|try_sign_modules)=([^#\s]*|\"[^\"]*\"|'[^']*')\s*(?:#.*)?$"
)


def settings(root: str = "") -> Dict[str, str]:
    """What DKMS's configuration says of signing; the last file counts."""
    found: Dict[str, str] = {}
    for pattern in CONFIGURATION:
        for path in sorted(glob.glob(glob.escape(root) + pattern)):
            for line in (host_reading.text(path) or "").splitlines():
                match = _SETTING.match(line)
                if match:
                    value = match.group(2).strip("\"'")
                    found[match.group(1)] = re.sub(
                        r"\$(?:kernelver|\{kernelver\})", os.uname().release, value
                    )
    return found


def pair(root: str = "") -> List[str]:
    """Paths of the key and of its certificate."""
    declared = settings(root)
    release = linux_texts.os_release(host_reading.text(root + "/etc/os-release") or "")
    key, certificate = declared.get("mok_signing_key", ""), declared.get("mok_certificate", "")
    if not key and release.get("ID") == "ubuntu":
        return list(UBUNTU)
    return [key or OWN[0], certificate or OWN[1]]


def state(root: str = "") -> Optional[str]:
    """What the firmware makes of the key, in the words of `boxwright.facts.model.Driver`."""
    if settings(root).get("try_sign_modules") == "false":
        return "unsigned"
    key, certificate = pair(root)
    # DKMS makes both anew where one of them is missing.
    if not os.path.isfile(root + certificate) or not (
        key.startswith("pkcs11:") or os.path.isfile(root + key)
    ):
        return "absent"
    found: Optional[str] = linux_texts.key_state(
        run(["mokutil", "--test-key", root + certificate], timeout=15).text
    )
    return found


def look(root: str = "") -> Dict[str, Optional[str]]:
    """Certificate and state; nothing on a machine without EFI, which has no Secure Boot."""
    if not os.path.isdir(root + EFI):
        return {}
    return {"certificate": pair(root)[1], "state": state(root)}
