import os

import pytest
from ansible.module_utils import card_answer, kernel_module, next_kernel
from ansible.module_utils.command import Result
from host_doubles import World

KERNEL = os.uname().release
VERSION = "580.105.08"


@pytest.fixture
def host(root, tmp_path, monkeypatch, module):
    """A host with the packages of `VERSION` unpacked and built, nothing loaded."""
    world = World(
        tmp_path,
        monkeypatch,
        "kernel",
        root=str(root),
        on_disk=VERSION,
        flavor="open",
        in_use=[],
        initramfs=0,
        dkms=f"nvidia/{VERSION}, {KERNEL}, x86_64: installed\n",
        daemon={"load": "loaded", "enabled": "enabled", "active": "active"},
    )
    (root / "lib/modules" / KERNEL / "build").mkdir(parents=True)
    (root / "sys/module").mkdir(parents=True)
    world.call = module("nvidia_module", version=VERSION)

    def load(name, version):
        (root / "sys/module" / name).mkdir()
        (root / "sys/module" / name / "version").write_text(version + "\n")

    world.load = load
    world.loaded = lambda: sorted(path.name for path in (root / "sys/module").iterdir())
    return world


def test_loads_now_and_at_boot(host, root):
    result = host.call()
    assert result["changed"]
    assert host.loaded() == ["nvidia", "nvidia_uvm"]
    assert result["loaded"] == VERSION
    assert result["reboot_needed"] == ""
    assert "blacklist nouveau\n" in (root / "etc/modprobe.d/boxwright-nvidia.conf").read_text()
    assert "nvidia\nnvidia-uvm\n" in (root / "etc/modules-load.d/boxwright-nvidia.conf").read_text()
    assert host.calls("update-initramfs") == [["-u", "-k", "all"]]


def test_second_run_changes_nothing(host):
    host.call()
    result = host.call()
    assert not result["changed"]
    assert result["done"] == []
    assert len(host.calls("update-initramfs")) == 1


def test_check_mode_touches_nothing(host, root):
    result = host.call(check=True)
    assert result["changed"]
    assert host.loaded() == []
    assert not (root / "etc").exists()
    assert not host.calls("modprobe")


def test_initramfs_that_was_cut_off_is_rebuilt_by_the_next_run(host):
    host.set(initramfs=1)
    assert "no space left" in host.call()["msg"]
    host.set(initramfs=0)
    host.call()
    assert len(host.calls("update-initramfs")) == 2
    host.call()
    assert len(host.calls("update-initramfs")) == 2


def test_a_host_without_initramfs_needs_none(host):
    host.set(initramfs=127)
    assert "rebuild the initramfs" not in host.call()["done"]
    assert not host.call()["changed"]


ROCKY = 'ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.6"\n'
WAITING = "5.14.0-570.12.1.el9_6.x86_64"


@pytest.fixture
def rocky(host, root):
    """The same host with dracut and grubby; a newer kernel is there beside the one that runs."""
    (root / "etc").mkdir()
    (root / "etc/os-release").write_text(ROCKY)
    host.set(initramfs=127, dracut=0, default_kernel=KERNEL)
    (root / "boot").mkdir()
    for name in (KERNEL, "0-rescue-ffe3d2c1b0a94857", "999.0.0-1.el9.x86_64"):
        (root / "boot" / f"vmlinuz-{name}").touch()
    return host


def test_dracut_rebuilds_the_initramfs_where_that_is_what_there_is(rocky, root):
    assert rocky.call()["changed"]
    assert rocky.calls("dracut") == [["--force", "--regenerate-all"]]
    assert not (root / "var/lib/boxwright/initramfs-pending").exists()
    rocky.call()
    assert len(rocky.calls("dracut")) == 1


def test_an_initramfs_that_dracut_cannot_write_is_told_and_owed(rocky, root):
    rocky.set(dracut=1)
    assert "cannot be rebuilt: dracut: FAILED: No space left" in rocky.call()["msg"]
    assert (root / "var/lib/boxwright/initramfs-pending").exists()
    rocky.set(dracut=0)
    assert "rebuild the initramfs" in rocky.call()["done"]


def test_the_kernel_that_boots_next_is_the_one_that_grubby_names(rocky):
    result = rocky.call()
    assert (result["kernel"], result["next_kernel"]) == (KERNEL, KERNEL)
    rocky.set(default_kernel="999.0.0-1.el9.x86_64")
    said = rocky.call()["msg"]
    assert "no kernel headers for 999.0.0-1.el9.x86_64" in said
    assert "install kernel-devel-999.0.0-1.el9.x86_64" in said


def test_without_grubby_the_newest_kernel_boots_next_and_no_rescue_image(rocky, root):
    rocky.set(default_kernel=None)
    (root / "boot/vmlinuz-999.0.0-1.el9.x86_64").unlink()
    (root / "boot/vmlinuz-0-rescue-ffe3d2c1b0a94857").rename(root / "boot/vmlinuz-0-rescue-9999999999")
    assert next_kernel.named(str(root)) == KERNEL


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        (f"/boot/vmlinuz-{WAITING}", WAITING),
        (f"/vmlinuz-{WAITING}", WAITING),
        ("", None),
        ("/boot/vmlinuz-a b", None),
        ("grubby: error\n/boot/vmlinuz-x", None),
    ],
)
def test_what_grubby_says(text, kernel):
    assert next_kernel.release(text) == kernel


def test_nouveau_that_nobody_uses_leaves_at_once(host):
    host.load("nouveau", "1")
    assert host.call()["reboot_needed"] == ""
    assert host.loaded() == ["nvidia", "nvidia_uvm"]


def test_nouveau_in_use_needs_a_reboot(host):
    host.load("nouveau", "1")
    host.set(in_use=["nouveau"])
    result = host.call()
    assert "nouveau holds the cards" in result["reboot_needed"]
    again = host.call()
    assert again["reboot_needed"]
    assert not again["changed"]


def test_another_version_is_exchanged_if_nothing_uses_it(host):
    host.load("nvidia", "570.195.03")
    host.load("nvidia_uvm", "570.195.03")
    result = host.call()
    assert result["loaded_before"] == "570.195.03"
    assert result["loaded"] == VERSION
    assert result["reboot_needed"] == ""
    assert host["daemon"]["active"] == "active"


def test_another_version_in_use_needs_a_reboot_and_nothing_is_stopped(host):
    host.load("nvidia", "570.195.03")
    host.load("nvidia_uvm", "570.195.03")
    host.set(in_use=["nvidia_uvm"])
    result = host.call()
    assert "module 570.195.03 is loaded and in use, 580.105.08 is installed" in result["reboot_needed"]
    assert host.loaded() == ["nvidia", "nvidia_uvm"]
    assert host["daemon"]["active"] == "active"
    assert not host.call()["changed"]


def test_the_other_flavor_of_the_same_version_is_exchanged(host):
    # https://github.com/NVIDIA/open-gpu-kernel-modules/issues/872: with it a Blackwell card is not found.
    host.set(flavor="proprietary")
    host.call()
    host.set(flavor="open")
    assert host.call(check=True)["changed"]
    result = host.call()
    assert f"exchange module {VERSION} (proprietary) for {VERSION} (open)" in result["done"]
    assert result["reboot_needed"] == ""
    assert host.calls("modprobe")[-2:] == [["nvidia"], ["nvidia-uvm"]]
    assert not host.call()["changed"]


def test_the_other_flavor_in_use_needs_a_reboot(host):
    host.set(flavor="proprietary")
    host.call()
    host.set(flavor="open", in_use=["nvidia_uvm"])
    result = host.call()
    said = f"module {VERSION} (proprietary) is loaded and in use, {VERSION} (open) is installed"
    assert result["reboot_needed"].startswith(said)
    assert "mismatch" not in result["reboot_needed"]
    assert not result["changed"]


def test_a_kernel_that_does_not_tell_its_flavor_is_left(host, root):
    host.call()
    (root / "proc/driver/nvidia/version").unlink()
    host.set(flavor="proprietary")
    assert not host.call()["changed"]


def test_libraries_of_another_version_than_module_and_package_need_a_reboot(host):
    host.call()
    host.set(libraries="570.195.03", daemon={"load": "loaded", "enabled": "enabled", "active": "failed"})
    result = host.call()
    assert result["reboot_needed"].startswith("module 580.105.08 is loaded, the libraries are 570.195 (")
    assert "Driver/library version mismatch" in result["reboot_needed"]
    assert not result["changed"], "what runs goes on, and the daemon could not start"
    assert host.call(check=True)["reboot_needed"] == result["reboot_needed"]
    host.set(libraries=None)
    assert host.call()["reboot_needed"] == ""


def test_a_wedged_card_ends_it_at_once(host, tmp_path, monkeypatch):
    host.call()
    (tmp_path / "bin/nvidia-smi").write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr(card_answer, "TIMEOUT_S", 0.5)
    assert "a card or its driver hangs" in host.call()["msg"]


def test_dkms_builds_what_it_owes(host):
    host.set(dkms=f"nvidia/{VERSION}: added\n", on_disk=None)
    result = host.call()
    assert f"build the module for {KERNEL}" in result["done"]
    assert result["loaded"] == VERSION


def test_without_headers_the_missing_package_is_named(host, root):
    host.set(dkms=f"nvidia/{VERSION}: added\n", on_disk=None)
    (root / "lib/modules" / KERNEL / "build").rmdir()
    assert f"install linux-headers-{KERNEL}" in host.call()["msg"]


def test_a_build_that_fails_is_told(host):
    host.set(dkms=f"nvidia/{VERSION}: added\n", on_disk=None, build_fails=True)
    assert "DKMS cannot build nvidia 580.105.08" in host.call()["msg"]


def test_the_kernel_of_the_next_boot_gets_its_module(host, root):
    (root / "boot").mkdir()
    (root / "boot" / "vmlinuz-99.1.0-1-amd64").touch()
    (root / "lib/modules/99.1.0-1-amd64/build").mkdir(parents=True)
    result = host.call()
    assert result["next_kernel"] == "99.1.0-1-amd64"
    assert "build the module for 99.1.0-1-amd64" in result["done"]


def test_without_headers_for_the_kernel_of_the_next_boot_no_reboot_is_asked_for(host, root):
    """A reboot would come up without a driver, and without nouveau: https://…/compute-gpu-installation/pull/18."""
    (root / "boot").mkdir()
    (root / "boot" / "vmlinuz-99.1.0-1-amd64").touch()
    host.load("nouveau", "1")
    host.set(in_use=["nouveau"])
    assert "install linux-headers-99.1.0-1-amd64" in host.call()["msg"]


def test_modules_that_the_distribution_built_are_missed_for_the_next_kernel(host, root):
    (root / "boot").mkdir()
    (root / "boot" / "vmlinuz-99.1.0-1-generic").touch()
    host.set(dkms="", prebuilt=KERNEL)
    said = host.call()["msg"]
    assert "kernel 99.1.0-1-generic boots next, and there is no driver for it" in said
    host.set(prebuilt=KERNEL + " 99.1.0-1-generic")
    assert host.call()["reboot_needed"] == ""


def test_nouveau_takes_the_cards_again(host, root):
    host.load("nouveau", "1")
    host.call()
    host.call(state="absent", version="")
    host.set(on_disk=None)
    assert host.call(state="restored", version="", check=True)["done"][0] == "load nouveau"
    assert host.call(state="restored", version="")["reboot_needed"] == ""
    assert host.loaded() == ["nouveau"]
    assert not host.call(state="restored", version="")["changed"]
    assert not [path for path in root.joinpath("var").rglob("*") if path.is_file()]


def test_nouveau_that_does_not_load_now_comes_with_the_next_boot(host):
    host.load("nouveau", "1")
    host.call()
    host.call(state="absent", version="")
    host.set(on_disk=None, nouveau_refuses=True)
    assert "nouveau comes back with the next boot" in host.call(state="restored", version="")["reboot_needed"]


def test_the_driver_of_before_is_loaded_again(host):
    host.load("nvidia", "550.1")
    host.load("nvidia_uvm", "550.1")
    host.call()
    host.call(state="absent", version="")
    host.set(on_disk="550.1")
    assert host.call(state="restored", version="")["loaded"] == "550.1"
    assert host.loaded() == ["nvidia", "nvidia_uvm"]


def test_a_second_uninstall_leaves_the_driver_of_before_alone(host):
    host.load("nvidia", "550.1")
    host.load("nvidia_uvm", "550.1")
    host.call()
    host.call(state="absent", version="")
    host.set(on_disk="550.1")
    host.call(state="restored", version="")
    assert not host.call(state="absent", version="")["changed"]
    assert not host.call(state="restored", version="")["changed"]
    assert host.loaded() == ["nvidia", "nvidia_uvm"]


def test_a_host_that_had_nothing_gets_nothing(host):
    host.call()
    host.call(state="absent", version="")
    host.set(on_disk=None)
    assert host.call(state="restored", version="")["done"] == [
        "remove /var/lib/boxwright/kernel-module-before.json"
    ]
    assert host.loaded() == []


def test_a_failed_daemon_is_started_again(host):
    host.call()
    host.set(daemon={"load": "loaded", "enabled": "enabled", "active": "failed"})
    assert host.call()["done"] == ["enable and start nvidia-persistenced"]
    assert ["reset-failed", "nvidia-persistenced.service"] in host.calls("systemctl")


def test_a_missing_daemon_is_an_error(host):
    host.set(daemon={"load": "not-found", "enabled": "", "active": "inactive"})
    assert "nvidia-persistenced.service is not installed" in host.call()["msg"]


def test_absent_undoes_it(host, root):
    host.call()
    result = host.call(state="absent", version="")
    assert result["changed"]
    assert host.loaded() == []
    assert not [path for path in root.joinpath("etc").rglob("*") if path.is_file()]
    assert not host.call(state="absent", version="")["changed"]


def test_absent_leaves_a_used_module_and_says_so(host):
    host.call()
    host.set(in_use=["nvidia_uvm"])
    result = host.call(state="absent", version="")
    assert "in use and stays loaded until the next boot" in result["reboot_needed"]
    assert host.loaded() == ["nvidia", "nvidia_uvm"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("modprobe: ERROR: could not insert 'nvidia': Key was rejected by service", "mokutil --import"),
        ("modprobe: ERROR: could not insert 'nvidia': Required key not available", "Secure Boot is on"),
        ("modprobe: ERROR: could not insert 'nvidia': No such device", "finds no NVIDIA card"),
        ("modprobe: FATAL: Module nvidia not found in directory /lib/modules/6.1", "DKMS did not build it"),
        ("modprobe: ERROR: could not insert 'nvidia': Exec format error", "built for another kernel"),
        ("something else", "modprobe failed: something else"),
    ],
)
def test_why_a_module_does_not_load(host, text, told):
    host.set(refuses=text)
    assert told in host.call()["msg"]
    assert told in kernel_module.explain_load(Result(1, "", text), KERNEL)


@pytest.mark.parametrize(
    ("text", "builds"),
    [
        (
            "nvidia/580.105.08, 6.1.0-4, x86_64: installed\n",
            [("nvidia", "580.105.08", "6.1.0-4", "installed")],
        ),
        ("nvidia, 535.1, 6.1.0-40-amd64, x86_64: built\n", [("nvidia", "535.1", "6.1.0-40-amd64", "built")]),
        ("nvidia/580.105.08: added\n", [("nvidia", "580.105.08", "", "added")]),
        (
            "nvidia-current/550.1, 6.1, x86_64: installed (WARNING! Diff between built and installed!)\n",
            [("nvidia-current", "550.1", "6.1", "installed")],
        ),
        ("zfs/2.1, 6.1, x86_64: installed\nError! Could not locate dkms.conf file.\n", []),
        ("", []),
    ],
)
def test_dkms_status(text, builds):
    assert [tuple(build) for build in kernel_module.parse_dkms(text)] == builds
