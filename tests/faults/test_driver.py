"""Where a box may start from, and what goes wrong with its driver: the message, the host unchanged, a rerun.

The tests of a host run in their order: each takes the box as the one before left it.
"""

import os
import subprocess
from pathlib import Path

import pytest

from boxwright.lab.store.servers.control import Fault, Settings, write

pytestmark = pytest.mark.lab

ROOT = Path(__file__).resolve().parents[2]
HOST = "driver1"
RUNFILE = "http://depot.boxwright.lab/tesla/570.124.06/NVIDIA-Linux-x86_64-570.124.06.run"
#: A container that was given the cards, as far as the kernel module is concerned.
IN_USE = "mount -t tmpfs none /dev && mknod /dev/nvidiactl c 195 255 && exec sleep 3600"


@pytest.fixture(scope="module")
def box(simulated, lab_hosts, role_box, tmp_path_factory):
    """A bare host with nouveau on an RTX 5090; it is not rebooted unless a test lets it."""
    lab_hosts(HOST)
    box = role_box(simulated(HOST), tmp_path_factory.mktemp(HOST), "preflight", "nvidia_driver")
    box.declared["nvidia_driver_reboot"] = False
    return box


@pytest.fixture
def depot():
    """Break the depot's files; it is whole again afterwards."""
    control = ROOT / ".lab" / "depot" / "control" / "www.json"
    yield lambda *faults: write(control, Settings(faults))
    write(control, Settings())


# From the distribution's driver to two branches of the vendor's


def test_another_apt_is_waited_for_and_named(box):
    code = (
        "import fcntl, time; f = open('/var/lib/dpkg/lock-frontend', 'w'); fcntl.lockf(f, 2); "
        "open('/run/held', 'w'); time.sleep(600)"
    )
    holder = subprocess.Popen(["docker", "exec", box.host.container, "python3", "-c", code])
    try:
        box.host.do("sh", "-c", "until test -e /run/held; do sleep 0.2; done")
        box.refused(
            "python3 -c import fcntl", "holds /var/lib/dpkg/lock-frontend, still after 2 s",
            nvidia_driver_lock_timeout_s=2,
        )  # fmt: skip
    finally:
        box.host.do("sh", "-c", "kill $(pgrep -f 'fcntl[.]lockf')")
        holder.wait(30)


def test_a_version_that_vanished_lists_what_is_there(box):
    there = "there is 595.71.05-1, 580.105.08-1, 580.95.05-1, 570.195.03-1"
    box.refused("has no version 580.99.01-*", there, nvidia_driver_version="580.99.01")


def test_secure_boot_is_told_before_anything_changes(box):
    box.host.do("lab-gpu", "fault", "secure-boot")
    try:
        box.refused("refused, nothing was changed", "Secure Boot is on", "mokutil --import")
    finally:
        box.host.do("lab-gpu", "clear", "secure-boot")


def test_the_run_installers_driver_is_refused_with_the_steps(box):
    code = f"import urllib.request; urllib.request.urlretrieve({RUNFILE!r}, '/tmp/driver.run')"
    box.host.do("python3", "-c", code)
    box.host.do("python3", "/tmp/driver.run", "--silent")
    box.refused("driver 570.124.06 of NVIDIA's .run installer", "sudo /usr/bin/nvidia-uninstall --silent")
    box.host.do("rm", "/usr/bin/nvidia-uninstall", "/usr/bin/nvidia-installer")
    libraries = "/usr/lib/x86_64-linux-gnu/lib{}.so.570.124.06"
    box.refused("belong to no package", *(libraries.format(name) for name in ("cuda", "nvidia-ml")))
    box.host.do("python3", "/tmp/driver.run", "--uninstall")


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        (
            {"nvidia_driver_flavor": "proprietary"},
            [
                "refused, nothing was changed",
                "works only with the open kernel modules",
                "nvidia_driver_flavor: open",
            ],
        ),
        (
            {"nvidia_driver_source": "distribution"},
            ["nvidia-smi has no version 580.*; there is 550.163.01-2", "Nothing was changed"],
        ),
        (
            {"nvidia_driver_manage": False},
            ["The cards of this host do not answer: nvidia-smi is not installed"],
        ),
    ],
    ids=["proprietary modules on Blackwell", "a branch that the distribution has not", "none there to check"],
)
def test_what_cannot_be_is_refused_before_anything_changes(box, declared, words):
    box.refused(*words, **declared)


def test_headers_that_cannot_be_had_are_named_before_anything_changes(box):
    source = "/etc/apt/sources.list.d/lab-kernel.sources"
    box.do("mv", source, "/root/kept")
    try:
        box.refused(
            f"linux-headers-{os.uname().release} is in none of the host's package sources Nothing was changed"
        )
    finally:
        box.do("mv", "/root/kept", source)


def test_a_kernel_that_waits_without_headers_is_refused_before_anything_changes(box):
    box.host.do("mkdir", "-p", "/boot")
    box.host.do("touch", "/boot/vmlinuz-99.0.0-1-amd64")
    box.refused("linux-headers-99.0.0-1-amd64 is in none of the host's package sources Nothing was changed")
    box.host.do("rm", "/boot/vmlinuz-99.0.0-1-amd64")


@pytest.fixture(scope="module")
def before(box):
    """The host with the distribution's own driver, one of its packages by name."""
    host = box.host
    host.do("apt-get", "update", "-q")
    words = [
        "apt-get",
        "install",
        "-q",
        "-y",
        "--no-install-recommends",
        "linux-headers-amd64",
        "nvidia-driver",
    ]
    host.do(*words, timeout=300)


def test_a_persons_hold_is_named_and_kept(box, before):
    box.host.do("apt-mark", "hold", "libcuda1")
    box.refused("upgrade libcuda1 550.163.01-2 -> 570.195.03-1 (held by a person", nvidia_driver_branch="570")
    assert box.host.do("apt-mark", "showhold") == "libcuda1\n"
    box.host.do("apt-mark", "unhold", "libcuda1")


def test_the_distributions_driver_half_installed_gives_way_and_nouveau_asks_for_a_reboot(box, before):
    deb = "/usr/lib/lab-gpu/distribution/nvidia-alternative_550.163.01-2_amd64.deb"
    box.host.do("dpkg", "--unpack", deb)
    box.declared["nvidia_driver_branch"] = "570"
    status, output, _ = box.run()
    assert status != 0
    assert "Reboot needed: nouveau holds the cards and is in use" in output
    assert "1 half-done ones mended" in output
    assert box.driver_versions() == {"570.195.03-1"}
    assert "nouveau" in box.host.do("ls", "/sys/module")
    again, said, changed = box.run()
    assert again != 0
    assert "Reboot needed: nouveau" in said
    assert changed == 0, "nothing is installed anew while a reboot is due"


def test_a_reboot_that_is_allowed_is_made_and_waited_for(box, before):
    boot = box.host.do("cat", "/proc/sys/kernel/random/boot_id")
    box.declared["nvidia_driver_reboot"] = True
    output = box.converges()
    assert "The host is rebooted" in output
    assert box.host.do("cat", "/proc/sys/kernel/random/boot_id") != boot
    assert box.driver() == "570.195.03"


def test_a_driver_that_is_installed_and_not_loaded_is_loaded(box):
    installed = box.do("dpkg-query", "-W")
    box.do("systemctl", "stop", "nvidia-persistenced")
    box.do("modprobe", "-r", "nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nvidia", check=False)
    assert "nvidia" not in box.do("ls", "/sys/module").split()
    box.converges()
    assert {"nvidia", "nvidia_uvm"} <= set(box.do("ls", "/sys/module").split())
    assert box.driver() == "570.195.03"
    assert box.do("dpkg-query", "-W") == installed


def test_a_driver_that_is_somebody_elses_to_manage_is_only_checked(box):
    theirs = {"nvidia_driver_manage": False}
    box.refused("expected was 580 or newer on all of them", **theirs, nvidia_driver_branch="580")
    before = box.host.fingerprint()
    status, output, changed = box.run(**theirs)
    assert (status, changed) == (0, 0), output
    assert box.host.fingerprint() == before


def test_a_package_that_cannot_be_downloaded_leaves_what_runs(box, depot):
    depot(Fault("status", path="*/nvidia-kernel-open-dkms_580*", status=404))
    box.refused("cannot be downloaded, nothing was changed", nvidia_driver_branch="580")
    assert box.driver() == "570.195.03"


def test_a_module_that_does_not_build_names_its_log_and_what_runs_goes_on(box):
    box.do("lab-gpu", "fault", "dkms-build", "--version", "580")
    try:
        status, output, _ = box.run(nvidia_driver_branch="580")
    finally:
        box.do("lab-gpu", "clear", "dkms-build")
    log = "/var/lib/dkms/nvidia/580.105.08/build/make.log"
    assert status != 0
    assert f"Consult {log} for more information" in output
    assert "a rerun picks it up there, or goes back if the declaration does" in output
    assert "580.105.08" in box.do("cat", log)
    assert box.do("cat", "/sys/module/nvidia/version") == "570.195.03\n"
    assert "nvidia-kernel-open-dkms" in box.do("dpkg", "--audit")


def test_a_module_in_use_is_left_and_both_versions_are_told(box):
    user = subprocess.Popen(["docker", "exec", box.host.container, "unshare", "-m", "sh", "-c", IN_USE])
    try:
        box.host.do("sh", "-c", "until pgrep -x sleep; do sleep 1; done")
        box.declared.update(nvidia_driver_branch="580", nvidia_driver_reboot=False)
        status, output, _ = box.run()
        assert status != 0
        assert "Reboot needed: module 570.195.03 is loaded and in use, 580.105.08 is installed" in output
        assert "What is running was left running" in output
        assert user.poll() is None
    finally:
        box.host.do("pkill", "-x", "sleep")
        user.wait(30)


def test_once_the_module_is_free_the_rerun_exchanges_it(box):
    """Also what a build that failed before has left half done is whole again."""
    box.converges()
    assert box.driver() == "580.105.08"
    assert box.driver_versions() == {"580.105.08-1"}
    assert box.do("dpkg", "--audit") == ""
