"""Ways to fail: text, stream and exit status as recorded."""

from __future__ import annotations

import pytest

NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest "
    "NVIDIA driver is installed and running.\n\n"
)


@pytest.mark.parametrize(
    "arguments", [[], ["-L"], ["--version"], ["topo", "-m"], ["-lgc", "1500"], ["--bogus"]]
)
def test_without_the_module_every_call_says_so(make_host, arguments):
    host = make_host("rtx5090")
    host.install()
    done = host.smi(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (9, NO_DRIVER, "")


def test_help_needs_no_driver(make_host):
    host = make_host("rtx5090")
    host.install()
    assert host.smi("-h").returncode == 0


def test_without_the_library(make_driven):
    host = make_driven()
    (host.root / "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1").unlink()
    done = host.smi()
    assert done.returncode == 12
    assert done.stdout.startswith("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.")


def test_upgraded_packages_do_not_fit_the_loaded_module_until_reboot(make_driven):
    host = make_driven(release="580.95.05")
    host.run("commands.dkms", "main", "remove", "-m", "nvidia", "-v", "580.95.05", "--all")
    host.install("580.105.08")
    done = host.smi("-L")
    assert (done.returncode, done.stdout) == (
        18,
        "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.105\n",
    )
    host.reboot()
    assert host.smi("--query-gpu=driver_version", "--format=csv,noheader", "-i", "0").stdout == "580.105.08\n"


@pytest.mark.parametrize(
    ("fault", "status", "text"),
    [
        ("no-driver", 9, NO_DRIVER),
        ("no-devices", 6, "No devices were found\n"),
        ("rebar", 6, "No devices were found\n"),
        ("nvml-unknown-error", 255, "Failed to initialize NVML: Unknown Error\n"),
        (
            "mismatch",
            18,
            "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.105\n",
        ),
    ],
)
def test_faults_end_nvidia_smi_as_recorded(make_driven, fault, status, text):
    host = make_driven()
    host.lab_gpu("fault", fault)
    done = host.smi("-L")
    assert (done.returncode, done.stdout) == (status, text)
    host.lab_gpu("clear")
    assert host.smi("-L").returncode == 0


def test_a_lost_card_is_told_beside_the_rows_of_the_others(make_driven):
    host = make_driven()
    host.lab_gpu("fault", "gpu-lost", "--gpu", "0")
    done = host.smi("--query-gpu=index,name", "--format=csv,noheader")
    assert done.returncode == 0
    assert done.stdout == "1, NVIDIA GeForce RTX 3090\n"
    assert done.stderr == "Unable to determine the device handle for GPU0: 0000:01:00.0: Unknown Error\n"
    assert "Xid (PCI:0000:01:00): 79" in host.run("commands.dmesg", "main", "-l", "err").stdout


def test_unknown_errors_fill_the_measured_cells_of_one_card(make_driven):
    host = make_driven()
    host.lab_gpu("fault", "unknown-error")
    rows = host.smi(
        "--query-gpu=index,name,temperature.gpu,memory.used,memory.total", "--format=csv,noheader"
    )
    assert rows.stdout.splitlines()[1] == (
        "1, NVIDIA GeForce RTX 3090, [Unknown Error], [Unknown Error], 24576 MiB"
    )


def test_hidden_devices_are_not_found(make_driven):
    host = make_driven()
    (host.root / "dev/nvidia0").unlink()
    assert host.smi("--query-gpu=index,pci.bus_id", "--format=csv,noheader").stdout == "0, 00000000:02:00.0\n"
    (host.root / "dev/nvidia1").unlink()
    assert host.smi("-L").returncode == 6


@pytest.mark.parametrize(
    ("license_package", "text"),
    [
        ("nvidia-kernel-dkms", "requires use of the NVIDIA open kernel modules"),
        ("nvidia-kernel-open-dkms", "Direct firmware load for nvidia/580.105.08/gsp_ga10x.bin failed"),
    ],
)
def test_cards_that_do_not_come_up(make_driven, license_package, text):
    host = make_driven("rtx5090")
    host.run("commands.dkms", "main", "remove", "-m", "nvidia", "-v", "580.105.08", "--all")
    if "open" in license_package:
        firmware = host.root / "usr/lib/firmware/nvidia/580.105.08"
        for path in firmware.iterdir():
            path.unlink()
        firmware.rmdir()
    host.install("580.105.08", license_package)
    host.reboot()
    assert (host.smi().returncode, host.smi().stdout) == (6, "No devices were found\n")
    assert text in host.run("commands.dmesg", "main").stdout


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["--bogus"], 2, "ERROR: Option --bogus is not recognized. Please run 'nvidia-smi -h'.\n\n"),
        (["-pl"], 255, "ERROR: Option -pl is missing its value. Please run 'nvidia-smi -h' for help.\n\n"),
        (["-i", "7", "-q"], 6, "No devices were found\n"),
        (["-pm", "1", "-pl", "300"], 2, "Input combination for device modification is not valid.\n"),
    ],
)
def test_bad_calls(make_driven, arguments, status, text):
    done = make_driven().smi(*arguments)
    assert (done.returncode, done.stdout) == (status, text)


def test_a_fault_can_concern_containers_alone(make_driven):
    host = make_driven()
    host.lab_gpu("fault", "containers-lost-devices")
    assert host.smi("-L").returncode == 0
    # A container is given the library and the state, and has no hardware code.
    (host.root / "usr/lib/lab-gpu").rename(host.root / "usr/lib/elsewhere")
    done = host.smi("-L")
    assert (done.returncode, done.stdout) == (255, "Failed to initialize NVML: Unknown Error\n")
