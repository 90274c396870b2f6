"""Raw answers of the module host_facts: a recorded virgin host, and the same host in other states."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxwright.facts import HostFacts, parse
from boxwright.facts.kept import BootCommand, PortAccess
from boxwright.facts.parsers import nvidia_smi

RECORDED = Path(__file__).parent / "recorded"
PROC = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build  (dvs-builder@x)\nGCC "
    "version:\n"
)
ROW = (
    "{index}, GPU-{index}, NVIDIA GeForce RTX 3090, 580.105.08, 00000000:{bus}:00.0, 24576 MiB, 434 MiB, 2 "
    "MiB, 8.6, "
    "Enabled, 350.00 W, 350.00 W, 100.00 W, 385.00 W, 210 MHz, 2100 MHz, 405 MHz, 9751 MHz, 1, 4, 8, 16, "
    "[N/A]\n"
)
MISMATCH = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 570.195\n"
NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest "
    "NVIDIA "
    "driver is installed and running.\n\n"
)


def said(rc: int, stdout: str = "", stderr: str = "", **more: Any) -> dict[str, Any]:
    return {"rc": rc, "stdout": stdout, "stderr": stderr, **more}


@pytest.fixture
def virgin() -> dict[str, Any]:
    raw: dict[str, Any] = json.loads((RECORDED / "debian13-rtx5090-virgin.json").read_text())
    return raw


def with_driver(raw: dict[str, Any], cards: int = 2, answering: int | None = None) -> dict[str, Any]:
    """The recorded host with 3090s and driver 580 loaded."""
    raw = copy.deepcopy(raw)
    rows = "".join(
        ROW.format(index=n, bus=f"0{n + 1}") for n in range(cards if answering is None else answering)
    )
    raw["commands"]["cards"] = said(0, rows, fields=list(nvidia_smi.CARD_FIELDS))
    raw["commands"]["topology"] = said(
        0, "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tPHB\t0-23\nGPU1\tPHB\t X \t0-23\n"
    )
    raw["commands"]["smi-version"] = said(0, "NVIDIA-SMI version  : 580.105.08\nCUDA Version        : 13.0\n")
    raw["commands"]["packages"]["stdout"] += "nvidia-driver-cuda\t580.105.08-1\tii \n"
    raw["commands"]["holds"] = said(0, "nvidia-driver-cuda\nother\n")
    raw["files"]["nvidia"] = PROC.format("580.105.08")
    raw["files"]["module-version"] = "580.105.08\n"
    raw["nouveau"] = False
    device = dict(raw["pci"][0], device="0x2204", driver="nvidia")
    raw["pci"] = [dict(device, bus=f"0000:0{n + 1}:00.0") for n in range(cards)]
    return raw


def test_a_hold_is_known_from_either_source(virgin):
    """On a busy host apt-mark may run out of time: what dpkg says of each package stands by itself."""
    raw = with_driver(virgin)
    raw["commands"]["holds"] = said(124, "")
    assert "nvidia-driver-cuda" not in parse(raw, "box1").driver.held
    raw["commands"]["packages"]["stdout"] = raw["commands"]["packages"]["stdout"].replace(
        "nvidia-driver-cuda\t580.105.08-1\tii ", "nvidia-driver-cuda\t580.105.08-1\thi "
    )
    assert "nvidia-driver-cuda" in parse(raw, "box1").driver.held


def test_a_virgin_host_is_known_by_its_bus(virgin):
    found = parse(virgin, "box1")
    assert (found.host, found.os.id, found.os.version_id, found.os.architecture) == (
        "box1",
        "debian",
        "13",
        "x86_64",
    )
    (card,) = found.cards
    assert (card.index, card.pci_bus, card.pci_id, card.name) == (0, "0000:01:00.0", "10de:2b85", None)
    assert card.link.width == 16
    assert found.driver.state == "nouveau"
    assert found.docker.version is None
    assert found.docker.data_root == "/var/lib/docker"
    assert found.memory.total > 1 << 30
    assert found.filesystem("/var/lib/boxwright") is not None
    assert any(one.port == 22 for one in found.listening)
    assert HostFacts.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_a_host_with_a_driver_tells_all_of_its_cards(virgin):
    found = parse(with_driver(virgin))
    assert [card.index for card in found.cards] == [0, 1]
    card = found.cards[0]
    assert card.name == "NVIDIA GeForce RTX 3090"
    assert (card.memory_total_mib, card.memory_reserved_mib) == (24576, 434)
    assert (card.power.min, card.power.max, card.clocks.max_graphics) == (100, 385, 2100)
    assert (card.link.width, card.link.max_width) == (8, 16)
    assert card.topology == ("X", "PHB")
    assert (card.persistence, card.mig) == (True, None)
    driver = found.driver
    assert (driver.state, driver.version, driver.branch, driver.flavor) == (
        "loaded",
        "580.105.08",
        580,
        "open",
    )
    assert driver.cuda == "13.0"
    assert driver.held == ("nvidia-driver-cuda",)


def test_a_card_that_fell_off_the_bus_is_lost(virgin):
    raw = with_driver(virgin, cards=2, answering=1)
    raw["commands"]["cards"]["stderr"] = (
        "Unable to determine the device handle for GPU1: 0000:02:00.0: Unknown Error\n"
    )
    found = parse(raw)
    assert [(card.index, card.lost) for card in found.cards] == [(0, False), (1, True)]
    assert found.driver.state == "loaded"
    assert "Unknown Error" in (found.driver.problem or "")


def test_the_only_card_that_fell_off_the_bus_is_lost(virgin):
    raw = with_driver(virgin, cards=1, answering=0)
    bus = raw["pci"][0]["bus"]
    raw["commands"]["cards"] = said(
        15, f"Unable to determine the device handle for GPU0: {bus}: Unknown Error\n"
    )
    assert [(card.index, card.lost) for card in parse(raw).cards] == [(0, True)]


def _absent(raw: dict[str, Any]) -> None:
    raw.update(nouveau=False, pci=[dict(raw["pci"][0], driver="")])


def _installed(raw: dict[str, Any]) -> None:
    _absent(raw)
    raw["commands"]["packages"]["stdout"] += "nvidia-driver-cuda\t580.105.08-1\tii \n"
    raw["commands"]["cards"] = said(9, NO_DRIVER)


def _upgraded(raw: dict[str, Any]) -> None:
    raw["commands"]["cards"] = said(18, MISMATCH)
    raw["files"]["nvidia"] = PROC.format("570.124.06")
    raw["files"]["module-version"] = "570.124.06\n"


def _no_devices(raw: dict[str, Any]) -> None:
    raw["commands"]["cards"] = said(6, "No devices were found\n")


def _hung(raw: dict[str, Any]) -> None:
    raw["commands"]["cards"] = said(124, "", "nvidia-smi: no answer within 15 s")


@pytest.mark.parametrize(
    ("change", "loaded", "state"),
    [
        (_absent, False, "absent"),
        (_installed, False, "installed"),
        (_upgraded, True, "mismatch"),
        (_no_devices, True, "no-devices"),
        (_hung, True, "failed"),
    ],
)
def test_the_states_of_a_driver(virgin, change, loaded, state):
    raw = with_driver(virgin) if loaded else copy.deepcopy(virgin)
    change(raw)
    found = parse(raw)
    assert found.driver.state == state
    assert len(found.cards) == (2 if loaded else 1)
    if state in ("mismatch", "no-devices", "failed"):
        assert found.driver.problem


def test_packages_of_two_versions_are_a_mismatch_though_nvidia_smi_works(virgin):
    raw = with_driver(virgin)
    raw["commands"]["packages"]["stdout"] += "libnvidia-ml1\t595.71.05-1\tii \n"
    raw["commands"]["packages"]["stdout"] = raw["commands"]["packages"]["stdout"].replace(
        "nvidia-driver-cuda\t580.105.08-1", "nvidia-driver-cuda\t595.71.05-1"
    )
    found = parse(raw)
    assert (found.driver.state, found.driver.installed_version) == ("mismatch", "595.71.05")


def test_docker_with_its_toolkit_and_ports(virgin):
    raw = with_driver(virgin)
    raw["commands"]["packages"]["stdout"] += "docker.io\t26.1.5+dfsg1-9\tii \n"
    raw["commands"]["docker-info"] = said(
        0,
        json.dumps(
            {
                "ServerVersion": "26.1.5",
                "DockerRootDir": "/data/docker",
                "CgroupDriver": "systemd",
                "CDISpecDirs": ["/etc/cdi"],
                "Runtimes": {"runc": {}, "nvidia": {}},
            }
        ),
    )
    raw["commands"]["toolkit"] = said(0, "NVIDIA Container Toolkit CLI version 1.17.8\ncommit: f202b80\n")
    raw["commands"]["cdi"] = said(0, "INFO[0000] Found 2 CDI devices\nnvidia.com/gpu=0\nnvidia.com/gpu=all\n")
    raw["commands"]["containers"] = said(
        0,
        json.dumps(
            {"Names": "boxwright-q", "Ports": "127.0.0.1:8000->8000/tcp, [::1]:9000-9001->9000-9001/tcp"}
        ),
    )
    raw["commands"]["sockets"] = said(
        0, 'LISTEN 0 1 127.0.0.1:8000 *:* users:(("docker-proxy",pid=1,fd=4))\n'
    )
    found = parse(raw)
    docker = found.docker
    assert (docker.version, docker.package, docker.running) == ("26.1.5", "docker.io", True)
    assert (docker.data_root, docker.cdi, docker.toolkit_version) == ("/data/docker", True, "1.17.8")
    assert docker.cdi_devices == ("nvidia.com/gpu=0", "nvidia.com/gpu=all")
    assert found.listening[0].container == "boxwright-q"


def test_an_engine_that_does_not_answer_is_told(virgin):
    raw = with_driver(virgin)
    raw["commands"]["packages"]["stdout"] += "docker.io\t26.1.5+dfsg1-9\tii \n"
    raw["commands"]["docker-info"] = said(1, '{"ServerVersion":""}', "Cannot connect to the Docker daemon")
    found = parse(raw).docker
    assert (found.version, found.running) == ("26.1.5+dfsg1", False)
    assert "Cannot connect" in (found.problem or "")


def test_models_of_store_and_hub(virgin):
    commit = "a" * 40
    raw = copy.deepcopy(virgin)
    raw["models"] = [
        {
            "origin": "store",
            "repo": "org/name",
            "revision": commit,
            "directory": f"/m/org--name/{commit}",
            "files": [{"path": "model.safetensors", "size": 5, "sha256": None}],
            "config": {"model_type": "x"},
            "tensors": [{"name": "a.*.w", "count": 2, "bytes": 5, "dtype": "BF16"}],
            "record": json.dumps({"files": [{"path": "model.safetensors", "sha256": "b" * 64}]}),
        },
        {"origin": "hub", "repo": "org/name", "requested": None, "error": "dns", "detail": "no name"},
    ]
    stored, hub = parse(raw).models
    assert stored.complete
    assert stored.request == f"org/name@{commit}"
    assert stored.files[0].sha256 == "b" * 64
    assert stored.weight_bytes == 5
    assert (hub.request, hub.error, hub.complete) == ("org/name", "dns", False)


def test_releases_with_their_records(virgin):
    raw = copy.deepcopy(virgin)
    raw["releases"] = [
        {"deployment": "q", "id": "abc", "current": True, "record": '{"port": 8000}'},
        {"deployment": "q", "id": "old", "current": False, "record": "torn {"},
    ]
    first, second = parse(raw).releases
    assert first.record["port"] == 8000
    assert (second.current, dict(second.record)) == (False, {})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
KEYS = (
    "port_access",
    "boot_commands",
    "driver_load",
    "commands",
    "files",
    "pci",
    "models",
    "images",
    "releases",
    "filesystems",
    "uname",
    "cpus",
    "nouveau",
    "tuning",
    "secure_boot",
    "signing_key",
    "efi",
    "headers",
)


@given(st.dictionaries(st.sampled_from(KEYS), JSON, max_size=6))
def test_no_raw_answer_makes_it_raise(raw):
    parse(raw)


@given(
    st.dictionaries(
        st.sampled_from(("cards", "packages", "docker-info", "containers", "cdi", "sockets")), JSON
    )
)
def test_no_command_makes_it_raise(commands):
    parse({"commands": commands, "efi": True})


def test_firewalls_that_are_on():
    ufw = {"files": {"ufw": "# x\nENABLED=yes\n"}, "commands": {}}
    firewalld = {"commands": {"firewalld": {"rc": 0, "stdout": "active\n", "stderr": ""}}}
    assert parse(ufw).firewalls == ("ufw",)
    assert parse(firewalld).firewalls == ("firewalld",)
    off = {"rc": 3, "stdout": "inactive\n", "stderr": ""}
    assert parse({"files": {"ufw": "ENABLED=no\n"}, "commands": {"firewalld": off}}).firewalls == ()


def test_who_reaches_the_ports_and_who_else_sets_the_cards():
    declared = {"allow_from": ["192.0.2.0/24"], "ports": [{"bind": "0.0.0.0", "port": 8000}]}
    command = {
        "path": "/etc/rc.local",
        "line": 2,
        "text": "nvidia-smi -pl 9",
        "what": "power limit",
        "card": "0",
    }
    raw = {
        "port_access": {"declared": json.dumps(declared), "wrong": ["gone"]},
        "boot_commands": [{**command, "movable": True}, {"path": 5, "line": "x"}, "torn"],
    }
    kept = parse(raw).kept
    assert kept.port_access == PortAccess(("192.0.2.0/24",), (("0.0.0.0", "8000"),), ("gone",))
    assert kept.boot_commands[0] == BootCommand(**command, movable=True)
    assert (kept.boot_commands[1].line, kept.boot_commands[1].movable) == (0, False)
    assert parse({"port_access": {}}).kept.port_access is None


@pytest.mark.parametrize(
    ("name", "version"),
    [
        # NVIDIA's for Ubuntu have no branch in their names from 590 on.
        ("libnvidia-compute", "595.71.05-1ubuntu1"),
        ("nvidia-headless-open", "595.71.05-1ubuntu1"),
        ("nvidia-headless-580-open", "580.159.04-1ubuntu1"),
        ("libnvidia-compute-580-server", "580.126.09-0ubuntu0.24.04.1"),
    ],
)
def test_the_drivers_version_by_whichever_package_is_there(name, version):
    raw = {"commands": {"packages": {"rc": 0, "stdout": f"{name}\t{version}\tii \n", "stderr": ""}}}
    assert parse(raw).driver.installed_version == version.partition("-")[0]
