"""nvidia-ctk: CDI specifications and Docker's configuration."""

from __future__ import annotations

import json

import pytest
import yaml


def ctk(host, *arguments):
    host.install_toolkit()
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); from labgpu.toolkit.ctk import main; "
        "sys.exit(main('1.18.1', sys.argv[1:]))"
    )
    return host._python(
        "-c", code, str(host.root / "usr/lib/nvidia-container-toolkit/toolkit.zip"), *arguments
    )


def test_a_specification_names_each_card_and_all(make_driven):
    host = make_driven()
    host.modprobe("nvidia-uvm")
    assert ctk(host, "cdi", "generate", "--output=/etc/cdi/nvidia.yaml").returncode == 0
    spec = yaml.safe_load((host.root / "etc/cdi/nvidia.yaml").read_text())
    assert (spec["cdiVersion"], spec["kind"]) == ("0.5.0", "nvidia.com/gpu")
    nodes = {
        device["name"]: [node["path"] for node in device["containerEdits"]["deviceNodes"]]
        for device in spec["devices"]
    }
    assert nodes["1"] == ["/dev/nvidia1"]
    assert nodes["all"] == ["/dev/nvidia0", "/dev/nvidia1"]
    assert sum(name.startswith("GPU-") for name in nodes) == 2
    common = spec["containerEdits"]
    assert {"path": "/dev/nvidia-uvm"} in common["deviceNodes"]
    mounts = {mount["containerPath"] for mount in common["mounts"]}
    assert {"/usr/bin/nvidia-smi", "/usr/lib/x86_64-linux-gnu/libcuda.so.580.105.08"} <= mounts
    listed = ctk(host, "cdi", "list")
    assert "nvidia.com/gpu=all\n" in listed.stdout
    assert "Found 5 CDI devices" in listed.stderr


@pytest.mark.parametrize(
    ("prepare", "symbol"),
    [
        (lambda host: host.lab_gpu("fault", "no-driver"), "ERROR_DRIVER_NOT_LOADED"),
        (lambda host: host.lab_gpu("fault", "mismatch"), "ERROR_LIB_RM_VERSION_MISMATCH"),
        (
            lambda host: (host.root / "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1").unlink(),
            "ERROR_LIBRARY_NOT_FOUND",
        ),
    ],
)
def test_without_a_driver_there_is_no_specification(make_driven, prepare, symbol):
    host = make_driven()
    prepare(host)
    failed = ctk(host, "cdi", "generate", "--output=/etc/cdi/nvidia.yaml")
    assert failed.returncode == 1
    assert symbol in failed.stderr
    assert not (host.root / "etc/cdi/nvidia.yaml").exists()


def test_runtime_configure_keeps_what_is_there(make_driven):
    host = make_driven()
    path = host.root / "etc/docker/daemon.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"data-root": "/data", "runtimes": {"crun": {"path": "crun"}}}')
    assert ctk(host, "runtime", "configure", "--runtime=docker", "--cdi.enabled").returncode == 0
    settings = json.loads(path.read_text())
    assert settings["data-root"] == "/data"
    assert set(settings["runtimes"]) == {"crun", "nvidia"}
    assert settings["features"] == {"cdi": True}


def test_runtime_configure_leaves_a_broken_file_alone(make_driven):
    host = make_driven()
    path = host.root / "etc/docker/daemon.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"data-root": ')
    assert ctk(host, "runtime", "configure").returncode == 1
    assert path.read_text() == '{"data-root": '


def test_version(make_driven):
    assert ctk(make_driven(), "--version").stdout.startswith("NVIDIA Container Toolkit CLI version 1.18.1\n")
