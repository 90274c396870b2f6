"""Cards, modules and DKMS as a host program sees them."""

from __future__ import annotations

import pytest

CARD = "sys/bus/pci/devices/0000:01:00.0"


def test_cards_are_on_the_bus_before_any_driver(make_host):
    host = make_host("rtx5090")
    attributes = {
        name: (host.root / CARD / name).read_text().strip()
        for name in ("vendor", "device", "class", "max_link_speed", "max_link_width")
    }
    assert attributes == {
        "vendor": "0x10de",
        "device": "0x2b85",
        "class": "0x030000",
        "max_link_speed": "32.0 GT/s PCIe",
        "max_link_width": "16",
    }
    config = (host.root / CARD / "config").read_bytes()
    assert (len(config), config[:4], config[9:12]) == (256, b"\xde\x10\x85\x2b", b"\x00\x00\x03")


def test_nouveau_holds_the_cards_until_it_is_blacklisted(make_host):
    host = make_host("rtx5090")
    assert (host.root / "sys/module/nouveau").is_dir()
    assert (host.root / CARD / "driver").readlink().name == "nouveau"
    host.install()
    refused = host.modprobe("nvidia")
    assert (refused.returncode, refused.stderr) == (
        1,
        "modprobe: ERROR: could not insert 'nvidia': No such device\n",
    )
    assert host.modprobe("-r", "nouveau").stderr == "modprobe: FATAL: Module nouveau is in use.\n"
    (host.root / "etc/modprobe.d").mkdir(parents=True)
    (host.root / "etc/modprobe.d/off.conf").write_text("blacklist nouveau\noptions nouveau modeset=0\n")
    host.reboot()
    assert not (host.root / "sys/module/nouveau").exists()
    assert (host.root / "sys/module/nvidia/version").read_text() == "580.105.08\n"
    assert (host.root / CARD / "driver").readlink().name == "nvidia"


def test_nouveau_takes_free_cards_when_it_is_asked_to(make_host):
    host = make_host("rtx5090")
    host.install()
    (host.root / "etc/modprobe.d").mkdir(parents=True)
    (host.root / "etc/modprobe.d/off.conf").write_text("blacklist nouveau\n")
    host.reboot()
    assert "No such device" in host.modprobe("nouveau").stderr
    assert host.modprobe("-r", "nvidia-drm", "nvidia").returncode == 0
    assert host.modprobe("nouveau").returncode == 0
    assert (host.root / CARD / "driver").readlink().name == "nouveau"


def test_the_run_installer_comes_and_goes_beside_packages(make_host):
    """Its files are listed by itself, and taken away by its own uninstaller."""
    host = make_host("rtx5090")
    (host.root / "etc/modprobe.d").mkdir(parents=True)
    (host.root / "etc/modprobe.d/off.conf").write_text("blacklist nouveau\n")
    host.reboot()
    before = {path for path in host.root.rglob("*") if path.is_file()}
    done = host.runfile("570.124.06", "--silent")
    assert done.returncode == 0, done.stderr
    host.modprobe("nvidia")
    assert host.smi("--query-gpu=driver_version", "--format=csv,noheader").stdout == "570.124.06\n"
    assert (host.root / "usr/lib/x86_64-linux-gnu/libcuda.so.1").readlink().name == "libcuda.so.570.124.06"
    assert host.modprobe("-r", "nvidia").returncode == 0
    done = host.uninstall_runfile()
    assert done.returncode == 0, done.stderr
    left = {path for path in host.root.rglob("*") if path.is_file() and "run" not in path.parts} - before
    assert [path.name for path in left if path.suffix not in (".run", ".dep")] == []


def test_the_driver_shows_itself_in_proc(make_driven):
    host = make_driven()
    first, second = (host.root / "proc/driver/nvidia/version").read_text().splitlines()
    assert first.startswith(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.105.08  Release Build"
    )
    assert second.startswith("GCC version:  gcc version")
    information = (host.root / "proc/driver/nvidia/gpus/0000:02:00.0/information").read_text()
    assert "Model: \t\t NVIDIA GeForce RTX 3090\n" in information
    assert "Device Minor: \t 1\n" in information


def test_device_nodes_come_with_their_modules(make_driven):
    host = make_driven()
    names = {path.name for path in (host.root / "dev").iterdir()}
    assert names == {"nvidia0", "nvidia1", "nvidiactl", "nvidia-modeset"}
    host.modprobe("nvidia_uvm")
    assert {"nvidia-uvm", "nvidia-uvm-tools"} <= {path.name for path in (host.root / "dev").iterdir()}


def test_modules_named_in_modules_load_d_are_there_after_boot(make_driven):
    host = make_driven()
    (host.root / "etc/modules-load.d").mkdir()
    (host.root / "etc/modules-load.d/uvm.conf").write_text("# for containers\nnvidia\nnvidia-uvm\n")
    host.reboot()
    assert (host.root / "dev/nvidia-uvm").exists()


def test_a_module_in_use_stays(make_driven):
    host = make_driven()
    assert host.run("commands.modprobe", "rmmod", "nvidia").stderr == (
        "rmmod: ERROR: Module nvidia is in use by: nvidia_modeset\n"
    )
    daemon = host.root / "run/nvidia-persistenced/nvidia-persistenced.pid"
    daemon.parent.mkdir()
    daemon.write_text("1\n")
    assert host.modprobe("-r", "nvidia-drm").returncode == 0
    assert host.modprobe("-r", "nvidia").stderr == "modprobe: FATAL: Module nvidia is in use.\n"
    daemon.unlink()
    assert host.modprobe("-r", "nvidia").returncode == 0
    assert not (host.root / "proc/driver/nvidia").exists()


def test_without_headers_dkms_only_adds(make_host):
    host = make_host("rtx5090")
    host.install(headers=False)
    assert host.run("commands.dkms", "main", "status").stdout == "nvidia/580.105.08: added\n"
    assert host.modprobe("nvidia").stderr == (
        f"modprobe: FATAL: Module nvidia not found in directory /lib/modules/{host.kernel}\n"
    )
    refused = host.run("commands.dkms", "main", "install", "nvidia/580.105.08", "-k", host.kernel)
    assert refused.returncode == 21
    assert f"Your kernel headers for kernel {host.kernel} cannot be found" in refused.stderr
    (host.root / f"lib/modules/{host.kernel}/build").mkdir()
    assert host.run("commands.dkms", "main", "autoinstall", "-k", host.kernel).returncode == 0
    assert host.run("commands.dkms", "main", "status").stdout == (
        f"nvidia/580.105.08, {host.kernel}, x86_64: installed\n"
    )


def test_what_dkms_removes_leaves_no_directories(make_host):
    host = make_host("rtx5090")
    host.install()
    updates = host.root / f"lib/modules/{host.kernel}/updates"
    assert (updates / "dkms/nvidia.ko").exists()
    words = ("remove", "-m", "nvidia", "-v", "580.105.08", "--all")
    assert host.run("commands.dkms", "main", *words).returncode == 0
    assert not updates.exists()
    assert not (host.root / "var/lib/dkms/nvidia").exists()


def test_a_build_can_fail(make_host):
    host = make_host("rtx5090")
    host.lab_gpu("fault", "dkms-build")
    host.install()
    failed = host.run("commands.dkms", "main", "install", "-m", "nvidia", "-v", "580.105.08")
    assert failed.returncode == 10
    assert "Error! Bad return status for module build" in failed.stderr


@pytest.mark.parametrize(("beginning", "status"), [("580", 10), ("580.105.08", 10), ("595", 0)])
def test_a_build_can_fail_for_some_versions(make_host, beginning, status):
    host = make_host("rtx5090")
    host.lab_gpu("fault", "dkms-build", "--version", beginning)
    host.install()
    done = host.run("commands.dkms", "main", "install", "-m", "nvidia", "-v", "580.105.08")
    assert done.returncode == status


@pytest.mark.parametrize(
    ("package", "license_"), [("nvidia-kernel-open-dkms", "Dual MIT/GPL"), ("nvidia-kernel-dkms", "NVIDIA")]
)
def test_modinfo_tells_the_flavor(make_host, package, license_):
    host = make_host("rtx3090x2")
    host.install("570.195.03", package)
    assert host.run("commands.modinfo", "modinfo", "-F", "license", "nvidia").stdout == license_ + "\n"
    assert "version:        570.195.03\n" in host.run("commands.modinfo", "modinfo", "nvidia").stdout


def test_secure_boot_rejects_the_module(make_driven):
    host = make_driven()
    variable = host.root / "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
    assert variable.read_bytes() == b"\x06\x00\x00\x00\x00"
    host.lab_gpu("fault", "secure-boot")
    host.reboot()
    assert variable.read_bytes()[-1] == 1
    assert host.run("commands.modinfo", "mokutil", "--sb-state").stdout == "SecureBoot enabled\n"
    assert host.modprobe("nvidia").stderr == (
        "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service\n"
    )


def test_a_host_without_cards_has_none_on_the_bus(make_host):
    host = make_host("none")
    assert not list((host.root / "sys/bus/pci/devices").iterdir())
    host.install()
    assert host.modprobe("nvidia").stderr == "modprobe: ERROR: could not insert 'nvidia': No such device\n"


@pytest.mark.parametrize(
    ("address", "vendor", "pci_class", "hidden"),
    [
        ("0000:00:02.0", "0x8086", "0x020000", False),
        ("0000:00:02.0", "0x8086", "0x030000", True),
        ("0000:0a:00.1", "0x10de", "0x040300", True),
        ("0000:01:00.0", "0x144d", "0x010802", True),
    ],
)
def test_devices_of_the_machine_give_way_to_simulated_ones(tmp_path, address, vendor, pci_class, hidden):
    from boxwright.lab.gpu.payload.labgpu.kernel import views

    device = tmp_path / address
    device.mkdir()
    (device / "vendor").write_text(vendor + "\n")
    (device / "class").write_text(pci_class + "\n")
    assert views.machine_device({"0000:01:00"})(str(device)) is hidden
