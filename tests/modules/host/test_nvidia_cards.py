import pytest
from ansible.module_utils import card_answer
from host_doubles import World

CARD = {"index": "0", "driver": "580.105.08"}
LOST = "Unable to determine the device handle for GPU1: 0000:02:00.0: Unknown Error\n"


@pytest.fixture
def host(root, tmp_path, monkeypatch, module):
    """A host with one card that answers."""
    world = World(tmp_path, monkeypatch, "cards", cards={"GPU-0": CARD})
    (root / "sys/module/nvidia").mkdir(parents=True)
    (root / "sys/module/nvidia/version").write_text("580.105.08\n")
    world.call = module("nvidia_cards")
    return world


def test_cards_that_answer(host):
    result = host.call()
    assert (result["outcome"], result["why"], result["changed"]) == ("ok", "", False)
    assert result["cards"] == [{"index": "0", "uuid": "GPU-0", "driver_version": "580.105.08"}]


@pytest.mark.parametrize(
    ("broken", "outcome", "told"),
    [
        (
            [18, "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 570.195"],
            "mismatch",
            "module 580.105.08 is loaded, the libraries are 570.195",
        ),
        ([6, "No devices were found"], "no-devices", "Above 4G Decoding"),
        (
            [9, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."],
            "no-driver",
            "lsmod",
        ),
        ([12, ""], "library-missing", "libnvidia-ml is missing"),
        ([15, "GPU is lost"], "lost", "Xid 79"),
        ([4, "Insufficient Permissions"], "permission", "/dev/nvidia"),
        (
            [255, "Failed to initialize NVML: Unknown Error"],
            "failed",
            "status 255 and said: Failed to initialize NVML: Unknown Error",
        ),
    ],
)
def test_cards_that_do_not_answer(host, broken, outcome, told):
    host.set(broken=broken)
    result = host.call()
    assert (result["outcome"], result["cards"]) == (outcome, [])
    assert told in result["why"]


def test_a_card_that_fell_off_the_bus(host):
    host.set(lost=LOST)
    result = host.call()
    assert result["lost"] == ["0000:02:00.0"]
    assert [card["uuid"] for card in result["cards"]] == ["GPU-0"]
    assert "fallen off the bus" in result["why"]


def test_a_wedged_card_is_not_waited_for_forever(host, tmp_path, monkeypatch):
    (tmp_path / "bin/nvidia-smi").write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr(card_answer, "TIMEOUT_S", 0.5)
    result = host.call()
    assert result["outcome"] == "hung"
    assert "a card or its driver hangs" in result["why"]


def test_a_host_without_the_program(host, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    assert "nvidia-smi is not installed" in host.call()["why"]
