"""The exporter of the cards as it is installed, its modules beside it, with programs that answer it."""

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from boxwright.monitoring.exporter import parts

ROOT = Path(__file__).resolve().parents[3]
#: What an RTX 4080 SUPER told (driver 595.71.05, utkuozdemir/nvidia_gpu_exporter), under load.
RECORDED = {
    "index": "0",
    "uuid": "GPU-0",
    "name": "NVIDIA GeForce RTX 4080 SUPER",
    "driver_version": "595.71.05",
    "pci.bus_id": "00000000:01:00.0",
    "temperature.gpu": "43",
    "temperature.memory": "N/A",
    "utilization.gpu": "97 %",
    "utilization.memory": "61 %",
    "memory.total": "16376 MiB",
    "memory.reserved": "434 MiB",
    "memory.used": "596 MiB",
    "power.draw": "84.24 W",
    "power.limit": "320.00 W",
    "clocks.current.graphics": "2805 MHz",
    "clocks.current.memory": "11251 MHz",
    "fan.speed": "[N/A]",
    "pcie.link.gen.current": "4",
    "pcie.link.width.current": "16",
    "ecc.errors.corrected.volatile.total": "[N/A]",
    "ecc.errors.uncorrected.volatile.total": "[N/A]",
    "clocks_event_reasons.active": "0x0000000000000064",
}
ANSWERING = """
import json, sys
world = json.load(open(sys.argv.pop(1)))
asked = sys.argv[1].partition("=")[2].split(",")
for field in asked:
    if field not in world["cards"][0]:
        sys.exit('Field "%s" is not a valid field to query.' % field)
for card in world["cards"]:
    print(", ".join(card[field] for field in asked))
sys.stderr.write(world["stderr"])
"""
XID = "NVRM: Xid (PCI:0000:01:00): {}, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"


@pytest.fixture
def box(tmp_path):
    """A box's programs and folders; box(…) runs the exporter and gives what it wrote by series."""
    return Box(tmp_path)


class Box:
    def __init__(self, folder):
        self.folder, self.output = folder, folder / "text" / "boxwright.prom"
        self.programs, self.config, self.devices = (folder / name for name in ("bin", "etc", "devices"))
        self.installed = folder / "lib"
        for one in (self.programs, self.config / "receipts", self.installed, self.output.parent):
            one.mkdir(parents=True)
        for name, source in parts().items():
            shutil.copy(source, self.installed / name)
        self.cards(RECORDED)
        self.kernel("")

    def program(self, name, text):
        path = self.programs / name
        path.write_text(text)
        path.chmod(0o755)

    def cards(self, *cards, stderr="", present=None):
        world = self.folder / "world.json"
        world.write_text(json.dumps({"cards": cards, "stderr": stderr}))
        (self.folder / "answering.py").write_text(ANSWERING)
        # The interpreter's path may have a space, which no first line of a script takes.
        words = shlex.join([sys.executable, str(self.folder / "answering.py"), str(world)])
        self.program("nvidia-smi", f'#!/bin/sh\nexec {words} "$@"\n')
        shutil.rmtree(self.devices, ignore_errors=True)
        for number in range(len(cards) if present is None else present):
            device = self.devices / f"0000:0{number + 1}:00.0"
            device.mkdir(parents=True)
            (device / "vendor").write_text("0x10de\n")
            (device / "class").write_text("0x030000\n")

    def kernel(self, journal, buffer=""):
        for name, text in (("journalctl", journal), ("dmesg", buffer)):
            (self.folder / name).write_text(text)
            self.program(name, f"#!/bin/sh\ncat '{self.folder / name}'\n")

    def run(self):
        program = "import sys, gpu_metrics as it; from pathlib import Path; "
        program += f"it.present.__defaults__ = (Path({str(self.devices)!r}),); sys.exit(it.main())"
        done = subprocess.run(
            [sys.executable, "-E", "-s", "-c", program, str(self.output), str(self.config)],
            cwd=self.installed,
            env={"PATH": f"{self.programs}:/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        self.status, self.said = done.returncode, done.stderr
        return self.series()

    def series(self):
        lines = [line for line in self.output.read_text().splitlines() if not line.startswith("#")]
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


CARD = 'gpu="0",uuid="GPU-0"'


def test_a_card_under_load(box):
    found = box.run()
    assert (box.status, box.said) == (0, "")
    values = {key.partition("{")[0]: value for key, value in found.items() if f"{{{CARD}}}" in key}
    assert values == {
        "boxwright_gpu_temperature_celsius": 43,
        "boxwright_gpu_utilization_ratio": 0.97,
        "boxwright_gpu_memory_busy_ratio": 0.61,
        "boxwright_gpu_memory_total_bytes": 16376 << 20,
        "boxwright_gpu_memory_reserved_bytes": 434 << 20,
        "boxwright_gpu_memory_used_bytes": 596 << 20,
        "boxwright_gpu_power_watts": 84.24,
        "boxwright_gpu_power_limit_watts": 320,
        "boxwright_gpu_graphics_clock_hertz": 2805e6,
        "boxwright_gpu_memory_clock_hertz": 11251e6,
        "boxwright_gpu_pcie_generation": 4,
        "boxwright_gpu_pcie_lanes": 16,
    }
    info = 'name="NVIDIA GeForce RTX 4080 SUPER",driver="595.71.05",bus="0000:01:00"'
    assert found[f"boxwright_gpu_info{{{CARD},{info}}}"] == 1
    assert (found["boxwright_gpu_present"], found["boxwright_gpu_answered"]) == (1, 1)


def test_what_holds_it_back(box):
    found = box.run()
    reasons = {
        key.rpartition('reason="')[2].rstrip('"}'): value
        for key, value in found.items()
        if key.startswith("boxwright_gpu_throttled")
    }
    assert reasons == {
        "sw_power_cap": 1,
        "hw_slowdown": 0,
        "sw_thermal_slowdown": 1,
        "hw_thermal_slowdown": 1,
        "hw_power_brake": 0,
    }


def test_a_driver_before_535_has_another_name_and_fewer_fields(box):
    card = dict(RECORDED)
    card["clocks_throttle_reasons.active"] = card.pop("clocks_event_reasons.active")
    del card["memory.reserved"]
    box.cards(card)
    found = box.run()
    assert found[f'boxwright_gpu_throttled{{{CARD},reason="hw_thermal_slowdown"}}'] == 1
    assert not [key for key in found if "memory_reserved" in key]
    assert found[f"boxwright_gpu_memory_used_bytes{{{CARD}}}"] == 596 << 20


def test_a_lost_card_is_counted_and_the_others_told(box):
    lost = "Unable to determine the device handle for GPU1: 0000:02:00.0: Unknown Error\n"
    box.cards(RECORDED, stderr=lost, present=2)
    found = box.run()
    assert (found["boxwright_gpu_present"], found["boxwright_gpu_answered"]) == (2, 1)
    assert box.status == 0
    assert "lost" in box.said


def test_no_driver_leaves_no_old_values(box):
    box.run()
    box.program("nvidia-smi", "#!/bin/sh\necho 'NVIDIA-SMI has failed because it could not'\nexit 9\n")
    found = box.run()
    assert box.status == 1
    assert "no-driver" in box.said
    assert (found["boxwright_gpu_present"], found["boxwright_gpu_answered"]) == (1, 0)
    assert not [key for key in found if "temperature" in key]


def test_a_box_without_cards_asks_nobody(box):
    box.cards(present=0)
    box.program("nvidia-smi", "#!/bin/sh\necho asked >&2\nexit 1\n")
    found = box.run()
    assert (box.status, box.said) == (0, "")
    assert set(found) == {
        "boxwright_gpu_present",
        "boxwright_gpu_answered",
        "boxwright_collected_timestamp_seconds",
    }


@pytest.mark.parametrize("place", ["journal", "buffer"])
def test_xids_are_counted_by_card_and_number(box, place):
    log = (
        "usb 1-1: new device\n" + XID.format(79) + XID.format(31) * 2 + "NVRM: Xid (PCI:0000:02:00): 13, x\n"
    )
    box.kernel(**{"journal": "", place: log})
    found = {key: value for key, value in box.run().items() if "xid" in key}
    assert found == {
        'boxwright_gpu_xid_total{bus="0000:01:00",xid="31"}': 2,
        'boxwright_gpu_xid_total{bus="0000:01:00",xid="79"}': 1,
        'boxwright_gpu_xid_total{bus="0000:02:00",xid="13"}': 1,
    }


def test_files_that_receipts_know_otherwise_are_drift(box):
    kept, edited, gone = (box.folder / name for name in ("kept", "edited", "gone"))
    seen = {f"beside {gone}": "whatever", "unit x.service": "active, enabled"}
    for path in (kept, edited, gone):
        path.write_text("as it was")
        path.chmod(0o640)
        sha = hashlib.sha256(b"as it was").hexdigest()
        seen[f"file {path}"] = f"0640 {os.getuid()}:{os.getgid()} {sha}"
    (box.config / "receipts" / "engine.json").write_text(json.dumps({"format": 1, "seen": seen}))
    (box.config / "receipts" / "odd.json").write_text("[")
    assert box.run()['boxwright_drifted_files{role="engine"}'] == 0
    edited.write_text("another")
    gone.unlink()
    assert box.run()['boxwright_drifted_files{role="engine"}'] == 2


def test_the_declared_power_limit_stands_beside_the_one_that_is_set(box):
    goals = {"GPU-0": {"power_limit_w": 300}, "GPU-1": {"power_limit_w": None}}
    (box.config / "gpu-tuning.json").write_text(json.dumps({"format": 2, "cards": goals}))
    found = box.run()
    assert {key: value for key, value in found.items() if "declared" in key} == {
        f"boxwright_gpu_declared_power_limit_watts{{{CARD}}}": 300
    }


def test_a_name_cannot_break_out_of_its_label(box):
    box.cards({**RECORDED, "name": 'a "card" \\ of mine'})
    (info,) = [key for key in box.run() if "_info" in key]
    assert r'name="a \"card\" \\ of mine"' in info
