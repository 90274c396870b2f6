import fcntl
import os
import subprocess
import sys
import time

import pytest
from ansible.module_utils import apt, apt_texts, package_locks, package_manager
from ansible.module_utils.command import Result
from ansible.module_utils.packages import Step, matches


@pytest.mark.parametrize(
    ("globs", "name", "meant"),
    [
        (["nvidia-*"], "nvidia-driver-cuda", True),
        (["nvidia-*"], "libnvidia-ml1", False),
        (["nvidia-*", "!nvidia-container-*"], "nvidia-container-toolkit", False),
        (["!nvidia-container-*", "nvidia-*"], "nvidia-container-toolkit", True),
        (["580.*"], "580.105.08-1", True),
        (["580.*"], "5801.1", False),
        (["580.*-[01]ubuntu[0-9]"], "580.105.08-0ubuntu1", True),
        (["580.*-[01]ubuntu[0-9]"], "580.105.08-0ubuntu0.24.04.2", False),
        ([], "anything", False),
    ],
)
def test_globs(globs, name, meant):
    assert matches(name, globs) is meant


def test_simulation_of_apt_3():
    text = (
        "NOTE: This is only a simulation!\nReading package lists...\n"
        "Remv nvidia-smi [550.163.01-2] [libcuda1:amd64 ]\n"
        "Purg nvidia-smi [550.163.01-2]\n"
        "Inst nvidia-driver-cuda [570.195.03-1] (580.105.08-1 NVIDIA:x [amd64]) [libcuda1:amd64 on nvidia]\n"
        "Inst dkms (3.3.0-1 NVIDIA:x [all])\n"
        "Inst same [1.0] (1.0 there [all])\n"
        "Conf dkms (3.3.0-1 NVIDIA:x [all])\n"
    )
    assert apt.parse_simulation(text) == [
        Step("remove", "nvidia-smi", "550.163.01-2", None),
        Step("upgrade", "nvidia-driver-cuda", "570.195.03-1", "580.105.08-1"),
        Step("install", "dkms", None, "3.3.0-1"),
    ]


def test_versions_known_to_the_sources():
    text = (
        "libcuda1 | 595.71.05-1 | http://there/x86_64  Packages\n"
        " libcuda1 | 580.105.08-1 | http://there/x86_64  Packages\n"
        " libcuda1 | 580.105.08-1 | http://mirror/x86_64  Packages\n"
        "   docker | 1.0 | http://there Sources\n"
    )
    assert apt.parse_madison(text) == {"libcuda1": ["595.71.05-1", "580.105.08-1"]}


def test_installed_packages():
    text = (
        "libc6:amd64\t2.41\tii \tamd64\nlibc6:i386\t2.41\tii \ti386\nold\t1\trc \tall\nnone\t\tun \t\n"
        "half\t2\tiF \tall\nheld\t3\thi \tall\nbroken\t4\tiHR\tall\nbad line\n"
    )
    found = apt.parse_installed(text, "amd64")
    assert set(found) == {"libc6", "libc6:i386", "half", "held", "broken"}
    assert [name for name, one in found.items() if one.unfinished] == ["half", "broken"]
    assert found["held"].healthy
    assert not found["half"].healthy


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Reading\nE: Unable to locate package x\n", "E: Unable to locate package x"),
        ("E: a\nE: a\n", "E: a"),
        ("one\ntwo\n", "one\ntwo"),
        ("", "exit status 100 without a message"),
        (
            "Building for 6.12.57+deb13-amd64\nError! Bad return status for module build on kernel: 6.12.57\n"
            "Consult /var/lib/dkms/nvidia/580.105.08/build/make.log for more information.\n"
            "dpkg: error processing package nvidia-kernel-open-dkms (--configure):\n old-style output\n",
            "Error! Bad return status for module build on kernel: 6.12.57\n"
            "Consult /var/lib/dkms/nvidia/580.105.08/build/make.log for more information.\n"
            "dpkg: error processing package nvidia-kernel-open-dkms (--configure):",
        ),
    ],
)
def test_reasons(text, told):
    assert apt.reasons(Result(100, text, "")) == told


LOCK = """
import fcntl, sys, time
stream = open(sys.argv[1], "w")
fcntl.lockf(stream, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    lock = tmp_path / "lock"
    process = subprocess.Popen([sys.executable, "-c", LOCK, str(lock)], stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    yield process, str(lock)
    process.kill()
    process.wait()


def test_the_holder_of_a_lock_is_named(holder):
    process, lock = holder
    assert package_locks.lock_holder(lock) == process.pid
    with pytest.raises(package_locks.LockTimeout, match=rf"process {process.pid}\) holds {lock}"):
        package_locks.wait_for_locks(0, (lock,))


def test_a_lock_is_waited_for(holder):
    process, lock = holder
    started = time.monotonic()
    subprocess.Popen([sys.executable, "-c", f"import os,time; time.sleep(1); os.kill({process.pid}, 9)"])
    assert str(process.pid) in package_locks.wait_for_locks(30, (lock,))
    assert time.monotonic() - started < 20


def test_free_and_missing_locks_are_free(tmp_path):
    (tmp_path / "free").touch()
    assert package_locks.wait_for_locks(0, (str(tmp_path / "free"), str(tmp_path / "missing"))) is None


def test_an_own_lock_is_no_obstacle(tmp_path):
    with (tmp_path / "own").open("w") as stream:
        fcntl.lockf(stream, fcntl.LOCK_EX)
        assert package_locks.lock_holder(str(tmp_path / "own")) is None
        assert os.getpid()


def test_source_text():
    params = {
        "key_url": "http://k",
        "uris": ["http://u/"],
        "suites": ["/"],
        "components": [],
        "architectures": ["amd64"],
    }
    assert apt_texts.source_text(params, "/etc/apt/keyrings/x.gpg").splitlines()[1:] == [
        "# Key: http://k",
        "Types: deb",
        "URIs: http://u/",
        "Suites: /",
        "Architectures: amd64",
        "Signed-By: /etc/apt/keyrings/x.gpg",
    ]


LIST = "# mine\ndeb [signed-by=/k.gpg] https://there/cuda/x86_64/ /\ndeb http://debian/debian trixie main\n"
DEB822 = (
    "Types: deb\nURIs: https://there/cuda/x86_64 https://other/\nSuites: /\n\nTypes: deb\nURIs: http://deb/\n"
)


def test_another_definition_of_the_address_is_switched_off_in_a_list():
    text = apt_texts.without(LIST, False, ["https://there/cuda/x86_64"])
    assert text.splitlines()[1].startswith("# Disabled by Boxwright: deb [signed-by")
    assert text.splitlines()[2] == LIST.splitlines()[2]
    assert apt_texts.without(text, False, ["https://there/cuda/x86_64"]) == text


def test_another_definition_of_the_address_is_switched_off_in_deb822():
    text = apt_texts.without(DEB822, True, ["https://there/cuda/x86_64/"])
    assert "URIs: https://other/\n" in text
    assert "URIs: http://deb/\n" in text
    alone = apt_texts.without("Types: deb\nURIs: https://there/\nSuites: /\n", True, ["https://there"])
    assert "\nEnabled: no\n" in alone
    assert apt_texts.without(alone, True, ["https://there"]) == alone


def test_other_files_stay_as_they_are():
    assert apt_texts.without(LIST, False, ["https://elsewhere/"]) == LIST
    assert apt_texts.without(DEB822, True, ["https://elsewhere/"]) == DEB822


def test_sha1_policy():
    text = (
        "[hash_algorithms]\nsha1.second_preimage_resistance = 2026-02-01    # Extend\nsha224 = 2026-02-01\n"
    )
    assert "sha1.second_preimage_resistance = 2030-02-01" in apt_texts.sha1_policy(text)
    assert "sha224 = 2026-02-01" in apt_texts.sha1_policy(text)
    assert apt_texts.sha1_policy("[packets]\n") is None


def test_lists_are_found_by_apts_names(tmp_path):
    lists = tmp_path / "var/lib/apt/lists"
    lists.mkdir(parents=True)
    pattern = apt_texts.list_pattern(str(tmp_path), "https://user:pw@there/cuda/x86_64/")
    (lists / "there_cuda_x86%5f64_._InRelease").touch()
    assert [path.name for path in tmp_path.glob(pattern[len(str(tmp_path)) + 1 :])]


@pytest.mark.parametrize(
    ("release", "manager"),
    [
        ('ID=debian\nVERSION_ID="13"\n', "apt"),
        ("ID=ubuntu\nID_LIKE=debian\n", "apt"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "dnf"),
        ('ID="rhel"\nID_LIKE="fedora"\n', "dnf"),
        ("ID=linuxmint\nID_LIKE='ubuntu debian'\n", "apt"),
    ],
)
def test_the_package_manager_is_the_distributions(tmp_path, release, manager):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text(release)
    assert package_manager.name(str(tmp_path)) == manager


def test_where_the_distribution_is_unknown_the_program_tells(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert package_manager.name(str(tmp_path)) == ""
    (tmp_path / "dnf").touch(mode=0o755)
    assert package_manager.name(str(tmp_path)) == "dnf"
