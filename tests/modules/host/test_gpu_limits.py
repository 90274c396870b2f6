import json
from pathlib import Path

import pytest
from ansible.module_utils import card_answer, card_limits
from ansible.module_utils.command import Result
from host_doubles import World

SCRIPT = Path(__file__).resolve().parents[3] / "roles/gpu_tuning/files/gpu-tuning.py"
CARD = {
    "name": "NVIDIA GeForce RTX 5090",
    "persistence": "Disabled",
    "limit": "575.00 W",
    "default": "575.00 W",
    "low": "400.00 W",
    "high": "600.00 W",
    "max_clock": 3090,
    "clocks": None,
}


@pytest.fixture
def host(root, tmp_path, monkeypatch, module):
    """A host with two cards; call(**arguments) runs the module, cards() tells the cards' state."""
    paths = [str(root / name) for name in ("script.py", "etc/tuning.json", "run/receipts.json")]
    world = World(
        tmp_path,
        monkeypatch,
        "cards",
        cards={f"GPU-{n}": {**CARD, "index": n} for n in range(2)},
        unit={"enabled": "disabled", "active": "inactive", "words": paths},
        file=str(tmp_path / "world.json"),
    )
    world.call = module(
        "gpu_limits",
        max_clock_mhz=2100,
        power_limit_w=450,
        config="/etc/tuning.json",
        receipts="/run/receipts.json",
        script="/script.py",
        script_text=SCRIPT.read_text(),
        unit="tuning.service",
        unit_text="[Unit]\n",
    )
    world.state = lambda: [
        (card["persistence"], card["limit"], card["clocks"]) for card in world["cards"].values()
    ]
    world.files = lambda: sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())
    return world


def test_sets_everything_and_keeps_the_answers(host, root):
    result = host.call()
    assert result["changed"]
    assert host.state() == [("Enabled", "450.00 W", "0,2100")] * 2
    receipts = json.loads((root / "run/receipts.json").read_text())["cards"]["GPU-1"]
    assert receipts["clocks_receipt"].startswith('GPU clocks set to "(gpuClkMin 0, gpuClkMax 2100)"')
    assert host["unit"]["enabled"] == "enabled"
    assert result["cards"][1]["clocks_mhz"] == [0, 2100]
    # One change a call, each by UUID.
    changes = [words for words in host.calls("nvidia-smi") if words[0] == "-i"]
    assert [words[2] for words in changes] == ["-pm", "-pl", "-lgc"] * 2


def test_second_run_asks_once_and_changes_nothing(host):
    host.call()
    host.set(calls=[])
    assert not host.call()["changed"]
    assert [call[:2] for call in host["calls"]] == [
        ["nvidia-smi", "--query-gpu=" + ",".join(card_limits.FIELDS)],
        ["systemctl", "show"],
    ]


def test_check_mode_touches_nothing(host):
    result = host.call(check=True)
    assert result["changed"]
    assert "card 0 (NVIDIA GeForce RTX 5090): power limit is 575 W, not 450 W" in result["done"]
    assert host.state() == [("Disabled", "575.00 W", None)] * 2
    assert host.files() == []


@pytest.mark.parametrize(("status", "text"), [(127, ""), (9, "couldn't communicate with the NVIDIA driver")])
def test_check_mode_before_the_driver_is_there(host, status, text):
    host.set(broken=[status, text])
    assert host.call(check=True)["changed"]
    assert "cannot be asked" in host.call()["msg"]


def test_somebody_elses_change_is_found_and_mended(host):
    host.call()
    cards = host["cards"]
    cards["GPU-1"].update(limit="500.00 W", persistence="Disabled")
    host.set(cards=cards)
    result = host.call()
    assert result["done"] == [
        "card 1 (NVIDIA GeForce RTX 5090): persistence is off",
        "card 1 (NVIDIA GeForce RTX 5090): power limit is 500 W, not 450 W",
    ]
    assert host.state() == [("Enabled", "450.00 W", "0,2100")] * 2


def test_a_lost_receipt_is_a_lost_lock(host, root):
    host.call()
    (root / "run/receipts.json").unlink()
    assert host.call()["changed"]
    assert host.state() == [("Enabled", "450.00 W", "0,2100")] * 2


def test_dropped_settings_go_back_to_the_default(host):
    host.call()
    assert host.call(max_clock_mhz=None, power_limit_w=None)["changed"]
    assert host.state() == [("Enabled", "575.00 W", None)] * 2
    assert not host.call(max_clock_mhz=None, power_limit_w=None)["changed"]


def test_a_limit_that_was_never_ours_is_left(host):
    cards = host["cards"]
    cards["GPU-0"]["limit"] = "500.00 W"
    host.set(cards=cards)
    host.call(power_limit_w=None)
    assert host.state()[0] == ("Enabled", "500.00 W", "0,2100")


def test_absent_puts_everything_back(host):
    host.call()
    assert host.call(state="absent")["changed"]
    assert host.state() == [("Disabled", "575.00 W", None)] * 2
    assert host.files() == []
    assert not host.call(state="absent")["changed"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            {"power_limit_w": 350},
            "power limit 350 W is outside what card 0 (NVIDIA GeForce RTX 5090) takes: 400 to 600 W",
        ),
        ({"power_limit_w": 601}, "400 to 600 W"),
        (
            {"max_clock_mhz": 3200},
            "clock 3200 MHz is above the highest of card 0 (NVIDIA GeForce RTX 5090): 3090 MHz",
        ),
        ({"min_clock_mhz": 2200}, "lowest clock 2200 MHz is above the highest 2100 MHz"),
    ],
)
def test_out_of_range_is_refused_before_anything_changes(host, arguments, told):
    result = host.call(**arguments)
    assert told in result["msg"]
    assert result["msg"].endswith("Nothing was changed.")
    assert host.files() == []


@pytest.mark.parametrize("watts", [400, 600])
def test_the_edges_of_the_range_are_in_it(host, watts):
    assert host.call(power_limit_w=watts)["changed"]
    assert host.state()[0][1] == f"{watts}.00 W"


def test_unsupported_is_reported_and_does_not_repeat(host):
    host.set(unsupported=["-pl", "-lgc"])
    result = host.call()
    assert (
        result["unsupported"][0] == "card 0 (NVIDIA GeForce RTX 5090) does not support: clocks, power limit"
    )
    assert not host.call()["changed"]


def test_unsupported_is_an_error_where_required(host):
    host.set(unsupported=["-lgc"])
    assert "does not support: clocks" in host.call(required=True)["msg"]


def test_a_card_without_power_limits(host):
    cards = {
        uuid: {**card, "limit": "[N/A]", "low": "[N/A]", "high": "[N/A]"}
        for uuid, card in host["cards"].items()
    }
    host.set(cards=cards)
    assert host.call()["unsupported"][0].endswith("does not support: power limit")
    assert not host.call()["changed"]


def test_an_exit_status_of_0_proves_nothing(host):
    host.set(silent=True)
    result = host.call()
    assert result["failed"]
    assert "power limit: All done." in result["msg"]


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (
            [18, "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 570.195"],
            "the libraries are 570.195",
        ),
        ([6, "No devices were found"], "finds no card"),
        ([9, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."], "not answer"),
        ([255, "strange"], "strange"),
    ],
)
def test_cards_that_cannot_be_asked(host, broken, told):
    host.set(broken=broken)
    assert told in host.call()["msg"]


def test_a_lost_card_stops_it_before_anything_changes(host):
    host.set(lost="Unable to determine the device handle for GPU2: 0000:04:00.0: Unknown Error\n")
    result = host.call()
    assert "fallen off the bus" in result["msg"]
    assert host.files() == []


def test_a_card_that_was_taken_out_is_told_by_the_unit(host):
    host.call()
    cards = host["cards"]
    del cards["GPU-1"]
    host.set(cards=cards)
    assert host.call()["changed"]
    assert not host.call()["changed"]


@pytest.mark.parametrize(
    ("row", "card"),
    [
        (
            "0, GPU-a, NVIDIA RTX, PRO 6000, Enabled, 350.00 W, 350.00 W, 100.00 W, 385.00 W, 2100 MHz",
            (0, "GPU-a", "NVIDIA RTX, PRO 6000", True, 350.0, 350.0, 100.0, 385.0, 2100),
        ),
        (
            "1, GPU-b, X, [N/A], [Not Supported], [N/A], N/A, [Unknown Error], [N/A]",
            (1, "GPU-b", "X", None, None, None, None, None, None),
        ),
    ],
)
def test_rows_of_cards(row, card, monkeypatch):
    monkeypatch.setattr(card_answer, "run", lambda argv, timeout: Result(0, row + "\n", ""))
    assert [tuple(one) for one in card_limits.read_cards()] == [card]
