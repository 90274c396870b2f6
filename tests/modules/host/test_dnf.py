"""Texts of dnf and rpm, and the list of versionlock."""

import os

import pytest
from ansible.module_utils import dnf, versionlock
from ansible.module_utils.command import Result
from ansible.module_utils.packages import Package, Step


@pytest.mark.parametrize(
    ("lower", "higher"),
    [
        ("1.0-1", "1.1-1"),
        ("1.9-1", "1.10-1"),
        ("9.9-1", "1:0.1-1"),
        ("1.0~rc1-1", "1.0-1"),
        ("1.0-1", "1.0^git1-1"),
        ("1.0^git1-1", "1.0.1-1"),
        ("1.a-1", "1.1-1"),
        ("1.0-9.el9", "1.0-10.el9"),
        ("3:580.95.05-1.el9", "3:580.105.08-1.el9"),
    ],
)
def test_versions_are_in_the_order_of_rpm(lower, higher):
    assert dnf.newest_first([lower, higher, lower]) == [higher, lower]


def test_installed_packages():
    machine = os.uname().machine
    text = (
        f"dkms\t0:3.2.1-1.el9\tnoarch\nlibnvidia-ml\t3:580.1-1\t{machine}\nlibnvidia-ml\t3:580.1-1\ti686\n"
        f"kernel-core\t0:5.14.0-503.el9\t{machine}\nkernel-core\t0:5.14.0-570.el9\t{machine}\n"
        "gpg-pubkey\t0:d42d0685-62589a51\t(none)\nbad line\n"
    )
    assert dnf.parse_installed(text, machine) == {
        "dkms": Package("dkms", "3.2.1-1.el9"),
        "libnvidia-ml": Package("libnvidia-ml", "3:580.1-1"),
        "libnvidia-ml.i686": Package("libnvidia-ml.i686", "3:580.1-1"),
        "kernel-core": Package("kernel-core", "5.14.0-570.el9", others=("5.14.0-503.el9",)),
    }


RULE = "=" * 80
TABLE = f"""
{RULE}
 Package   Arch     Version            Repository  Size
{RULE}
Installing:
 replacer  noarch   2.0-1.el9          cuda       5.6 k
     replacing  oldone.noarch 1.0-1.el9
Upgrading:
 driver    noarch   3:580.105.08-1.el9 cuda       5.6 k
Removing dependent packages:
 gone      noarch   1.0-1              @cuda        0
Switching module streams:
 nvidia-driver      570-open -> 580-open

Transaction Summary
{RULE}
Install  1 Package
Upgrade  1 Package
Remove   1 Package

"""


def test_the_table_of_a_transaction():
    packages = {"driver": Package("driver", "3:570.1-1.el9"), "gone": Package("gone", "1.0-1")}
    found = dnf.parse_transaction(Result(0, TABLE, "Error: Operation aborted."), packages)
    assert found.problems == []
    assert found.steps == [
        Step("install", "replacer", None, "2.0-1.el9"),
        Step("remove", "oldone", "1.0-1.el9", None),
        Step("upgrade", "driver", "3:570.1-1.el9", "3:580.105.08-1.el9"),
        Step("remove", "gone", "1.0-1", None),
        Step("stream", "nvidia-driver", "570-open", "580-open"),
    ]


def test_a_row_that_was_not_understood_is_missed():
    torn = TABLE.replace(" gone      noarch   1.0-1              @cuda        0\n", " gone\n")
    problems = dnf.parse_transaction(Result(0, torn, ""), {}).problems
    assert problems == ["dnf's table has 0 packages to remove, its summary 1"]


def test_dnf_shell_goes_on_after_an_error_and_we_do_not():
    text = "No match for argument: nosuch\n" + TABLE
    done = Result(0, text, "Error: Unable to find a match: nosuch\nError: Operation aborted.\n")
    assert dnf.complaints(done) == [
        "No match for argument: nosuch",
        "Error: Unable to find a match: nosuch",
    ]


@pytest.mark.parametrize(
    ("entry", "name", "version", "allowed"),
    [
        ("driver-3:580.1-1.el9.*", "driver", "3:580.1-1.el9", True),
        ("driver-3:580.1-1.el9.*", "driver", "3:580.2-1.el9", False),
        ("driver-3:580.1-1.el9.x86_64", "driver", "3:580.1-1.el9", True),
        ("driver-580.1-1.el9", "driver", "3:580.2-1.el9", False),
        ("*driver*-3:580.*", "xdriver", "3:580.2-1.el9", True),
        ("*driver*-3:580.*", "xdriver", "3:595.2-1.el9", False),
        ("!driver-3:580.1-1.el9.*", "driver", "3:580.1-1.el9", False),
        ("!driver-3:580.1-1.el9.*", "driver", "3:580.2-1.el9", True),
        ("cuda-toolkit-12-8", "cuda-toolkit-12-8", "12.9-1", True),
        ("# driver-3:580.1-1.el9.*", "driver", "1-1", True),
        ("driver-3:580.1-1.el9.*", "other", "1-1", True),
        ("driver-3:580.1-1.el9.*", "driver", None, False),
    ],
)
def test_what_a_lock_allows(tmp_path, entry, name, version, allowed):
    place = tmp_path / "etc/dnf/plugins"
    place.mkdir(parents=True)
    (place / "versionlock.list").write_text(entry + "\n")
    assert versionlock.VersionLock(str(tmp_path)).allows(name, version) is allowed


def test_entries_of_others_and_comments_stay(tmp_path):
    place = tmp_path / "etc/dnf/plugins"
    place.mkdir(parents=True)
    file = place / "versionlock.list"
    file.write_text("# why\nmine-0:1-1.*\n!a-0:9-9.*\n*a*-0:1-1")
    locks = versionlock.VersionLock(str(tmp_path))
    packages = {"a": Package("a", "3:1-1")}
    locks.lock(["a", "missing"], packages)
    assert file.read_text() == "# why\nmine-0:1-1.*\n!a-0:9-9.*\n*a*-0:1-1\na-3:1-1.*\n"
    assert locks.locked({"a": packages["a"], "b": Package("b", "1")}) == ["a"]
    locks.unlock(["a"])
    assert file.read_text() == "# why\nmine-0:1-1.*\n!a-0:9-9.*\n*a*-0:1-1\n"


def test_streams():
    text = "Name  Stream\nnvidia-driver latest-dkms [d] default [d] x\nnvidia-driver 580-open x\n"
    assert dnf.parse_streams(text, "nvidia-driver") == ["latest-dkms", "580-open"]
    assert dnf.enabled_stream("[x]\nname=x\nstream=580-open\nprofiles=\nstate=enabled\n") == "580-open"
    assert dnf.enabled_stream("[x]\nname=x\nstream=\nstate=\n") is None
    assert dnf.enabled_stream(None) is None


def test_a_lock_of_dnf_names_its_process(tmp_path):
    file = tmp_path / "rpmdb_lock.pid"
    assert dnf.holder(str(file)) is None
    file.write_text(str(os.getpid()))
    assert dnf.holder(str(file)) == os.getpid()
    file.write_text("99999999")
    assert dnf.holder(str(file)) is None


@pytest.mark.parametrize(
    "text",
    [
        "[main]\nlocklist=/x\nlocklist=/y\n",
        "[main]\nenabled\nlocklist=/x\n",
        "[main]\nenabled=1\nenabled=0\n",
        "no section\n",
        "[other]\nlocklist=/x\n",
    ],
)
def test_settings_of_locks_that_cannot_be_read_are_told_and_end_nothing(tmp_path, text):
    """What stands before the mistake is no settings either: it is as the parser left it."""
    settings = tmp_path / versionlock.SETTINGS[1:]
    settings.parent.mkdir(parents=True)
    settings.write_text(text)
    locks = versionlock.VersionLock(str(tmp_path))
    assert locks.path == str(tmp_path) + versionlock.LIST
    assert locks.entries == []
    assert (locks.off or "").startswith("" if "other" in text else f"{versionlock.SETTINGS} cannot be read")
