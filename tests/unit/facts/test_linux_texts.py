from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxwright.facts.parsers import linux_texts

OPEN = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.105.08  Release Build  "
    "(dvs-builder@U22)\nGCC"
)
CLOSED = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.124.06  Wed Feb 26 02:04:33 UTC 2025\nGCC "
    "version: 12"
)


def test_os_release_without_its_quotes():
    text = 'NAME="Debian GNU/Linux"\nVERSION_ID=\'13\'\nID=debian\n# a comment\nBROKEN="x\nnonsense\n'
    found = linux_texts.os_release(text)
    assert (found["NAME"], found["VERSION_ID"], found["ID"]) == ("Debian GNU/Linux", "13", "debian")
    assert found["BROKEN"] == "x"


def test_meminfo_in_bytes():
    assert linux_texts.meminfo("MemTotal:       24684084 kB\nHugePages_Total:       0\n") == {
        "MemTotal": 24684084 * 1024,
        "HugePages_Total": 0,
    }


def test_only_installed_packages_count():
    text = (
        "nvidia-driver-cuda\t580.105.08-1\tii \nlibcuda1:amd64\t580.105.08-1\thi "
        "\nnvidia-old\t570.1-1\trc \nx\t\tun \n"
    )
    assert linux_texts.packages(text) == {"nvidia-driver-cuda": "580.105.08-1", "libcuda1": "580.105.08-1"}


def test_rpms_by_their_newest_version():
    text = (
        "nvidia-driver-cuda\t3:580.105.08-1.el9\tx86_64\nkernel-devel\t0:5.14.0-503.11.1.el9_5\tx86_64\n"
        "kernel-devel\t0:5.14.0-570.12.1.el9_6\tx86_64\nkernel-devel\t0:5.14.0-427.1.1.el9\tx86_64\n"
        "Error: something\n\t\t\n"
    )
    assert linux_texts.rpms(text) == {
        "nvidia-driver-cuda": "3:580.105.08-1.el9",
        "kernel-devel": "5.14.0-570.12.1.el9_6",
    }
    assert linux_texts.upstream("3:580.105.08-1.el9") == "580.105.08"


@given(st.text(), st.text())
def test_rpms_of_any_text(name, version):
    linux_texts.rpms(f"{name}\t{version}\tx86_64\n{name}\t1\tx86_64\n")


def test_the_upstream_part_of_a_version():
    assert linux_texts.upstream("1:580.105.08-1") == "580.105.08"
    assert linux_texts.upstream("580.105.08") == "580.105.08"


def test_listening_sockets_with_their_programs():
    text = (
        'LISTEN 0 4096 127.0.0.1:8000 0.0.0.0:* users:(("docker-proxy",pid=12,fd=4))\n'
        'LISTEN 0 128 [::]:22 [::]:* users:(("sshd",pid=1,fd=4))\n'
        "LISTEN 0 4096 127.0.0.53%lo:53 0.0.0.0:*\nLISTEN 0 511 *:80 *:*\nESTAB 0 0 1.2.3.4:5 6.7.8.9:1\n"
    )
    assert [tuple(one) for one in linux_texts.sockets(text)] == [
        ("127.0.0.1", 8000, "docker-proxy"),
        ("::", 22, "sshd"),
        ("127.0.0.53", 53, None),
        ("*", 80, None),
    ]


def test_the_loaded_driver_and_its_flavor():
    assert linux_texts.loaded_driver(OPEN) == ("580.105.08", "open")
    assert linux_texts.loaded_driver(CLOSED) == ("570.124.06", "proprietary")
    assert linux_texts.loaded_driver("") == (None, None)
    assert linux_texts.module_flavor("Dual MIT/GPL") == "open"
    assert linux_texts.module_flavor("NVIDIA") == "proprietary"
    assert linux_texts.module_flavor("") is None


def test_secure_boot_by_the_firmware_or_by_mokutil():
    assert linux_texts.secure_boot("0600000001", "") is True
    assert linux_texts.secure_boot("0600000000", "") is False
    assert linux_texts.secure_boot(None, "SecureBoot enabled\n") is True
    assert linux_texts.secure_boot(None, "SecureBoot enabled\nSecureBoot is in Setup Mode\n") is False
    assert linux_texts.secure_boot(None, "SecureBoot disabled\n") is False
    assert linux_texts.secure_boot(None, "EFI variables are not supported on this system\n") is False
    assert linux_texts.secure_boot(None, "mokutil: not found") is None
    unchecked = "SecureBoot enabled\nSecureBoot validation is disabled in shim\n"
    assert linux_texts.secure_boot("0600000001", unchecked) is False


@pytest.mark.parametrize(
    ("said", "state"),
    [
        # https://github.com/lcp/mokutil/blob/master/src/mokutil.c (test_key, print_skip_message)
        ("/k.der is already enrolled\n", "enrolled"),
        ("/k.der is already in db\n", "enrolled"),
        ("/k.der is already in the built-in trusted keyring\n", "enrolled"),
        ("CA of /k.der is already enrolled\n", "enrolled"),
        ("/k.der is already in the enrollment request\n", "pending"),
        ("/k.der is not enrolled\n", "not-enrolled"),
        ("/k.der is blocked in dbx\n", "blocked"),
        ("/k.der is blocked in MokListX\n", "blocked"),
        ("CA of /k.der is blocked\n", "blocked"),
        ("Failed to open /k.der\n", None),
        ("EFI variables are not supported on this system\n", None),
        ("mokutil: not found", None),
    ],
)
def test_what_mokutil_says_of_a_key(said, state):
    assert linux_texts.key_state(said) == state


def test_addresses_with_those_of_the_default_route_first():
    links = (
        '[{"ifname":"eth1","addr_info":[{"family":"inet","local":"10.0.0.5","scope":"global"}]},'
        '{"ifname":"docker0","addr_info":[{"family":"inet","local":"172.17.0.1","scope":"global"}]},'
        '{"ifname":"eth0","addr_info":[{"family":"inet6","local":"fd00::2","scope":"global"},'
        '{"family":"inet","local":"192.0.2.2","scope":"global"},{"family":"inet6","local":"fe80::1","scope":"link"}]}]'
    )
    assert linux_texts.addresses(links, '[{"dst":"default","dev":"eth0"}]') == (
        "192.0.2.2",
        "fd00::2",
        "10.0.0.5",
    )
    assert linux_texts.addresses("", "ip: not found") == ()


@given(st.text())
def test_no_text_makes_it_raise(text):
    linux_texts.os_release(text)
    linux_texts.meminfo(text)
    linux_texts.packages(text)
    linux_texts.upstream(text)
    linux_texts.sockets(text)
    linux_texts.kernel_module(text)
    linux_texts.loaded_driver(text)
    linux_texts.addresses(text, text)
    linux_texts.secure_boot(text, text)
