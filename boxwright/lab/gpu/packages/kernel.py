"""What the distribution gives to build modules for the kernel of a lab host: headers, and DKMS.

The kernel of a simulated host is the machine's, for which no distribution may have headers. These packages
take their place; they lie in a repository of files on the host itself.
"""

from __future__ import annotations

import re

from boxwright.lab.gpu import source
from boxwright.lab.gpu.deb import File, Package

#: A revision above every kernel of Debian 12 and 13, so that the metapackage means the lab's kernel.
HEADERS_REVISION = "99+lab1"
#: The vendor's repository carries this version too (seen on Debian 13 hosts).
DKMS_VERSION = "3.3.0-1"
HEADERS_POSTINST = """#!/bin/sh
set -e
if [ "$1" = configure ] && [ -d /etc/kernel/header_postinst.d ]; then
    run-parts --report --exit-on-error --arg={release} /etc/kernel/header_postinst.d
fi
"""
DKMS_HOOK = b"""#!/bin/sh
# Build modules for a kernel whose headers were just installed.
set -e
exec dkms autoinstall -k "$1"
"""


def packages(release: str) -> list[Package]:
    """Headers for a kernel release such as "6.12.57+deb13-amd64", their metapackage, and DKMS.

    And a newer kernel with its headers, which nothing asks for: one that waits for the next boot.
    """
    version = _version(release)
    meta = Package(
        "linux-headers-amd64",
        version,
        "Header files for Linux amd64 configuration (metapackage)",
        control={"Depends": f"linux-headers-{release} (= {version})"},
        section="kernel",
    )
    newer = newer_release(release)
    image = Package(
        f"linux-image-{newer}",
        _version(newer),
        f"Linux {newer}",
        (
            File(f"/boot/vmlinuz-{newer}", b"simulated\n"),
            File(f"/usr/lib/modules/{newer}/modules.builtin", b""),
        ),
        section="kernel",
    )
    return [headers(release), meta, image, headers(newer), dkms()]


def headers(release: str) -> Package:
    """What modules for a kernel are built with."""
    code = f"/usr/src/linux-headers-{release}"
    return Package(
        f"linux-headers-{release}",
        _version(release),
        f"Header files for Linux {release}",
        (
            File(f"{code}/Makefile", f"# Linux {release}, as a lab host has it\n".encode()),
            File(f"/usr/lib/modules/{release}/build", link=code),
        ),
        scripts={"postinst": HEADERS_POSTINST.format(release=release)},
        section="kernel",
    )


def newer_release(release: str) -> str:
    """A kernel that boots instead of `release` where both are installed."""
    number = re.match(r"\d+", release)
    return f"{int(number.group()) + 1 if number else 1}.0.1-1-amd64"


def _version(release: str) -> str:
    number = re.match(r"\d+(\.\d+)*", release)
    return f"{number.group() if number else '0'}-{HEADERS_REVISION}"


def dkms() -> Package:
    """The dkms command, with a build that needs no compiler."""
    return Package(
        "dkms",
        DKMS_VERSION,
        "Dynamic Kernel Module System (DKMS)",
        (
            File("/usr/sbin/dkms", source.command("commands.dkms", "main"), 0o755),
            File("/usr/lib/dkms/common.postinst", source.command("commands.dkms", "package"), 0o755),
            File("/etc/kernel/header_postinst.d/dkms", DKMS_HOOK, 0o755),
        ),
        {"Depends": "kmod, python3 (>= 3.9)"},
        architecture="all",
        section="kernel",
        conffiles=("/etc/kernel/header_postinst.d/dkms",),
    )
