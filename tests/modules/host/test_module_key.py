"""The key that DKMS signs with, and what mokutil says of it."""

import os

import pytest
from ansible.module_utils import module_key

UBUNTU, DEBIAN = 'ID=ubuntu\nVERSION_ID="24.04"\n', 'ID=debian\nVERSION_ID="12"\n'
#: As mokutil, which knows the keys whose file says what they are.
MOKUTIL = """#!/bin/sh
test "$1" = --test-key || exit 9
test -f "$2" || { echo "Failed to open $2" >&2; exit 255; }
echo "$2 is $(cat "$2")"
exit 1
"""


@pytest.fixture
def host(root, tmp_path, monkeypatch):
    """A host in small: host.write(path, text), host.look()."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/mokutil"
    program.write_text(MOKUTIL)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    (root / "sys/firmware/efi").mkdir(parents=True)

    class Host:
        mokutil = program

        @staticmethod
        def write(path, text=""):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)

        @staticmethod
        def look():
            found = module_key.look(str(root))
            return found.get("certificate"), found.get("state")

    Host.write("etc/os-release", DEBIAN)
    return Host


OWN, SHIM = "/var/lib/dkms/mok.pub", "/var/lib/shim-signed/mok/MOK.der"


@pytest.mark.parametrize(
    ("system", "state", "expected"),
    [
        (DEBIAN, "already enrolled", (OWN, "enrolled")),
        (DEBIAN, "not enrolled", (OWN, "not-enrolled")),
        (DEBIAN, "already in the enrollment request", (OWN, "pending")),
        (DEBIAN, "blocked in dbx", (OWN, "blocked")),
        (UBUNTU, "already enrolled", (SHIM, "absent")),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "already enrolled", (OWN, "enrolled")),
    ],
)
def test_dkms_own_key(host, system, state, expected):
    host.write("etc/os-release", system)
    host.write("var/lib/dkms/mok.key")
    host.write("var/lib/dkms/mok.pub", state)
    assert host.look() == expected


def test_on_ubuntu_it_is_the_one_of_update_secureboot_policy(host):
    host.write("etc/os-release", UBUNTU)
    host.write("var/lib/dkms/mok.key")
    host.write("var/lib/dkms/mok.pub", "already enrolled")
    host.write("var/lib/shim-signed/mok/MOK.priv")
    host.write("var/lib/shim-signed/mok/MOK.der", "not enrolled")
    assert host.look() == (SHIM, "not-enrolled")
    host.write("var/lib/shim-signed/mok/MOK.der", "already enrolled")
    assert host.look() == (SHIM, "enrolled")


@pytest.mark.parametrize("system", [DEBIAN, UBUNTU])
def test_the_key_that_the_configuration_names(host, system):
    host.write("etc/os-release", system)
    host.write("var/lib/dkms/mok.pub", "already enrolled")
    host.write("etc/dkms/framework.conf", "# mok_signing_key=/no\nmok_signing_key=/etc/a.key\n")
    host.write(
        "etc/dkms/framework.conf.d/mine.conf",
        "mok_signing_key=\"/etc/b.key\"  # mine\nmok_certificate='/etc/b.der'\n",
    )
    host.write("etc/b.key")
    host.write("etc/b.der", "not enrolled")
    assert host.look() == ("/etc/b.der", "not-enrolled")


def test_a_key_by_kernel(host):
    host.write(
        "etc/dkms/framework.conf", "mok_signing_key=/k/$kernelver.key\nmok_certificate=/k/${kernelver}.der\n"
    )
    release = os.uname().release
    host.write(f"k/{release}.key")
    host.write(f"k/{release}.der", "already enrolled")
    assert host.look() == (f"/k/{release}.der", "enrolled")


def test_a_key_in_a_token_has_no_file(host):
    host.write("etc/dkms/framework.conf", 'mok_signing_key="pkcs11:token=mine"\nmok_certificate=/etc/c.der\n')
    host.write("etc/c.der", "already enrolled")
    assert host.look() == ("/etc/c.der", "enrolled")


def test_a_certificate_without_its_key_is_made_anew_and_then_not_enrolled(host):
    host.write("var/lib/dkms/mok.pub", "already enrolled")
    assert host.look() == (OWN, "absent")


def test_dkms_that_does_not_sign(host):
    host.write("var/lib/dkms/mok.key")
    host.write("var/lib/dkms/mok.pub", "already enrolled")
    host.write("etc/dkms/framework.conf", "try_sign_modules=false\n")
    assert host.look() == (OWN, "unsigned")


def test_without_mokutil_nobody_says(host, monkeypatch):
    host.write("var/lib/dkms/mok.key")
    host.write("var/lib/dkms/mok.pub", "already enrolled")
    host.mokutil.write_text("#!/bin/sh\necho EFI variables are not supported on this system >&2; exit 1\n")
    assert host.look() == (OWN, None)


def test_a_machine_without_efi_is_not_asked(host, root):
    (root / "sys/firmware/efi").rmdir()
    assert host.look() == (None, None)
