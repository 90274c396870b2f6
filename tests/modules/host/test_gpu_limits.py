import json
import subprocess
from pathlib import Path

import pytest
from ansible.module_utils import card_answer, card_clocks, card_limits, driver_load
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
    "max_memory": 14001,
    "clocks": None,
    "memory_lock": None,
    "utilization": 0,
    "graphics": 210,
    "memory": 405,
}


@pytest.fixture
def host(root, tmp_path, monkeypatch, module):
    """A host with two cards; call(**arguments) runs the module, cards() tells the cards' state."""
    paths = [str(root / name) for name in ("script.py", "etc/tuning.json", "run/receipts.json")]
    world = World(
        tmp_path,
        monkeypatch,
        "cards",
        cards={f"GPU-{n}": {**CARD, "index": n, "bus": f"00000000:0{n + 1}:00.0"} for n in range(2)},
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


@pytest.mark.parametrize("damage", ["", "{", "[]", "null", '{"cards": [1]}', '{"cards": {"GPU-1": 5}}'])
def test_a_damaged_receipt_is_a_lost_one(host, root, damage):
    host.call(max_clock_mhz=2100)
    path = root / "run/receipts.json"
    path.write_text(damage)
    assert host.call(max_clock_mhz=2100)["changed"]
    assert json.loads(path.read_text())["cards"]["GPU-1"]["clocks_mhz"] == [0, 2100]
    assert not host.call(max_clock_mhz=2100)["changed"]


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


def test_a_trial_sets_the_cards_and_neither_file_nor_unit_and_a_reload_ends_it(host, root):
    host.call()
    before = (root / "etc/tuning.json").read_text()
    result = host.call(state="trial", config="/run/trial.json", power_limit_w=420, max_clock_mhz=1800)
    assert result["changed"]
    assert host.state() == [("Enabled", "420.00 W", "0,1800")] * 2
    assert (root / "etc/tuning.json").read_text() == before
    host.call(state="trial", config="/run/trial.json", power_limit_w=None, max_clock_mhz=None)
    assert host.state() == [("Enabled", "575.00 W", None)] * 2
    # As the unit's reload does, by which a trial ends: what is declared is drifted from, and mended.
    assert host.call()["changed"]
    assert host.state() == [("Enabled", "450.00 W", "0,2100")] * 2


def test_no_trial_beyond_what_the_cards_take_or_without_a_way_back(host):
    result = host.call(state="trial", config="/run/trial.json")
    assert "tuning.service is not active, so nothing would bring the cards back" in result["msg"]
    host.call()
    for arguments in ({"power_limit_w": 300}, {"max_clock_mhz": 9000}):
        result = host.call(state="trial", config="/run/trial.json", **arguments)
        assert "Nothing was changed." in result["msg"]
    assert host.state() == [("Enabled", "450.00 W", "0,2100")] * 2


def test_a_trial_of_a_setting_that_cards_do_not_support_is_no_trial(host):
    host.call(power_limit_w=None)
    host.set(unsupported=["-pl"])
    result = host.call(state="trial", config="/run/trial.json", power_limit_w=420, required=True)
    assert "does not support: power limit" in result["msg"]


def test_absent_puts_everything_back(host, root):
    host.call()
    assert host.call(state="absent")["changed"]
    assert host.state() == [("Disabled", "575.00 W", None)] * 2
    assert host.files() == []
    assert not list(root.rglob("boxwright")), "no directory of ours is left empty"
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
            "0, GPU-a, NVIDIA RTX, PRO 6000, Enabled, 350 W, 350 W, 100.00 W, 385.00 W, 2100 MHz, 9751 MHz, "
            "00000000:01:00.0",
            (
                0,
                "GPU-a",
                "NVIDIA RTX, PRO 6000",
                True,
                350.0,
                350.0,
                100.0,
                385.0,
                2100,
                9751,
                "00000000:01:00.0",
            ),
        ),
        (
            "1, GPU-b, X, [N/A], [Not Supported], [N/A], N/A, [Unknown Error], [N/A], [N/A], [N/A]",
            (1, "GPU-b", "X", None, None, None, None, None, None, None, ""),
        ),
    ],
)
def test_rows_of_cards(row, card, monkeypatch):
    monkeypatch.setattr(card_answer, "run", lambda argv, timeout: Result(0, row + "\n", ""))
    assert [tuple(one) for one in card_limits.read_cards()] == [card]


def test_one_card_has_limits_of_its_own(host):
    own = {"1": {"max_clock_mhz": 1900, "power_limit_w": None}}
    host.call(cards=own)
    assert host.state() == [("Enabled", "450.00 W", "0,2100"), ("Enabled", "575.00 W", "0,1900")]
    assert not host.call(cards=own)["changed"]
    assert host.call(cards={"GPU-1": {"max_clock_mhz": 1900}})["changed"]
    assert host.state()[1] == ("Enabled", "450.00 W", "0,1900")
    assert host.call()["changed"]
    assert host.state()[1] == ("Enabled", "450.00 W", "0,2100")


@pytest.mark.parametrize(
    ("cards", "told"),
    [
        (
            {"1": {"power_limit_w": 350}},
            "gpu_tuning_cards.1.power_limit_w: power limit 350 W is outside what card 1 (NVIDIA GeForce RTX "
            "5090) takes: 400 to 600 W",
        ),
        ({"GPU-0": {"max_clock_mhz": 9000}}, "gpu_tuning_cards.GPU-0.max_clock_mhz: clock 9000 MHz is above"),
        ({"2": {"max_clock_mhz": 2000}}, "gpu_tuning_cards.2: no such card; there are 0 (GPU-0), 1 (GPU-1)"),
        ({"0": {"memory_clock_mhz": 20000}}, "memory_clock_mhz: memory clock 20000 MHz is above the highest"),
    ],
)
def test_a_card_s_own_limit_out_of_range_names_its_variable(host, cards, told):
    result = host.call(cards=cards)
    assert told in result["msg"]
    assert host.files() == []


def test_a_memory_lock_is_made_kept_and_lifted(host):
    host.call(memory_clock_mhz=10000)
    assert [card["memory_lock"] for card in host["cards"].values()] == ["10000,10000"] * 2
    assert not host.call(memory_clock_mhz=10000)["changed"]
    assert host.call()["changed"]
    assert [card["memory_lock"] for card in host["cards"].values()] == [None] * 2


def test_a_clock_below_every_other_is_a_failure_and_not_unsupported(host):
    result = host.call(max_clock_mhz=120)
    assert "Specified clock combination" in result["msg"]


def test_the_receipt_of_a_driver_that_was_loaded_anew_does_not_count(host, monkeypatch):
    host.call()
    own = driver_load.identity()
    monkeypatch.setattr(driver_load, "identity", lambda: "another:1")
    result = host.call(check=True)
    assert result["done"] == [
        f"card {n} (NVIDIA GeForce RTX 5090): clock range is not locked" for n in range(2)
    ]
    monkeypatch.setattr(driver_load, "identity", lambda: own)
    assert not host.call(check=True)["changed"]


def work(host, **values):
    host.set(cards={uuid: {**card, **values} for uuid, card in host["cards"].items()})


def test_verified_says_where_it_cannot_judge(host, monkeypatch):
    monkeypatch.setattr(card_clocks, "PAUSE_S", 0)
    host.call()
    told = host.call(state="verified")["told"]
    assert told[0] == (
        "card 0 (NVIDIA GeForce RTX 5090) is idle: whether its lock holds shows under load only"
    )
    work(host, utilization=97, graphics=2100)
    told = host.call(state="verified")["told"]
    assert told[0].startswith("card 0 (NVIDIA GeForce RTX 5090) keeps its lock of 2100 MHz under load")


def test_verified_fails_where_a_loaded_card_is_above_its_lock(host):
    host.call()
    work(host, utilization=97, graphics=2805)
    result = host.call(state="verified")
    assert "card 1 (NVIDIA GeForce RTX 5090) runs at 2805 MHz, locked at 2100 MHz" in result["msg"]


def test_verified_tells_of_a_memory_lock_that_is_not_kept(host):
    host.call(memory_clock_mhz=10000)
    work(host, utilization=97, graphics=2100, memory=13801)
    result = host.call(state="verified", memory_clock_mhz=10000)
    assert "took a memory lock at 10000 MHz and runs its memory at 13801 MHz" in result["told"][0]
    assert "does not keep it" in host.call(state="verified", memory_clock_mhz=10000, required=True)["msg"]


def test_verified_finds_a_limit_that_somebody_changed_and_mends_nothing(host):
    host.call()
    work(host, limit="500.00 W")
    assert "power limit is 500 W, not 450 W" in host.call(state="verified")["msg"]
    assert host["cards"]["GPU-0"]["limit"] == "500.00 W"


RC_LOCAL = """#!/bin/sh
# nvidia-smi -pm 0
if true; then
  nvidia-smi -lgc 0,1900
fi
nvidia-smi -i 0 -pl 300 >/dev/null 2>&1 || true
nvidia-smi -lmc 9000
for card in 0 1; do nvidia-smi -i $card -pl 300; done
exit 0
"""


def test_lines_of_rc_local_are_taken_over_where_declared_and_come_back(host, root):
    file = root / "etc/rc.local"
    file.parent.mkdir(parents=True)
    file.write_text(RC_LOCAL)
    file.chmod(0o755)
    checked = host.call(check=True)
    assert file.read_text() == RC_LOCAL
    result = host.call()
    assert [line for line in result["done"] if line.startswith("take over")] == [
        "take over /etc/rc.local:4: nvidia-smi -lgc 0,1900",
        "take over /etc/rc.local:6: nvidia-smi -i 0 -pl 300 >/dev/null 2>&1 || true",
    ]
    assert set(result["done"]) - set(checked["done"]) == {result["done"][-1]}
    assert result["told"] == [
        f"/etc/rc.local:{line} sets the cards as well, and is left as it is: take it out there"
        for line in ("7: nvidia-smi -lmc 9000", "8: for card in 0 1; do nvidia-smi -i $card -pl 300; done")
    ]
    lines = file.read_text().splitlines()
    assert lines[3] == "  : # taken over by boxwright-gpu-tuning.service: nvidia-smi -lgc 0,1900"
    assert subprocess.run(["sh", "-n", file], check=False).returncode == 0
    assert file.stat().st_mode & 0o777 == 0o755
    backup = next(file.parent.glob("rc.local.before-*"))
    assert backup.read_text() == RC_LOCAL
    assert not host.call()["changed"]
    assert host.call(state="absent")["changed"]
    assert file.read_text() == RC_LOCAL
    assert not list(file.parent.glob("rc.local.before-*"))


def test_an_rc_local_that_does_not_run_is_left(host, root):
    file = root / "etc/rc.local"
    file.parent.mkdir(parents=True)
    file.write_text(RC_LOCAL)
    assert host.call()["told"] == []
    assert file.read_text() == RC_LOCAL


def test_other_units_and_crontabs_are_told(host, root):
    files = {
        "etc/systemd/system/limits.service": "[Service]\nExecStart=/usr/bin/nvidia-smi -pl 300\n",
        "etc/systemd/system/script.service": "[Service]\nExecStart=/bin/sh /usr/local/bin/limits.sh\n",
        "usr/local/bin/limits.sh": "#!/bin/sh\n\nnvidia-smi -lgc 0,1500\n",
        "etc/cron.d/limits": "@reboot root nvidia-smi -pm 1\n0 * * * * root nvidia-smi -pl 200\n",
        "etc/systemd/system/boxwright-gpu-tuning.service": "[Service]\nExecStart=nvidia-smi -pl 1\n",
        "etc/systemd/system/watch.service": "[Service]\nExecStart=/usr/bin/nvidia-smi -q -l 5\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    told = host.call()["told"]
    assert [text.partition(" sets ")[0] for text in told] == [
        "/etc/systemd/system/limits.service:2: ExecStart=/usr/bin/nvidia-smi -pl 300",
        "/usr/local/bin/limits.sh:3: nvidia-smi -lgc 0,1500",
        "/etc/cron.d/limits:1: @reboot root nvidia-smi -pm 1",
        "/etc/cron.d/limits:2: 0 * * * * root nvidia-smi -pl 200",
    ]
