#!/usr/bin/python3
"""Bring the NVIDIA cards to the declared persistence, clocks and power limit; put them back on reset.

    gpu-tuning.py apply CONFIG RECEIPTS     at boot, and whenever the declaration changed
    gpu-tuning.py reset CONFIG RECEIPTS     on stop: what `apply` changed, back to the cards' defaults

Installed by Boxwright's role gpu_tuning. No query tells an applied clock lock, so what nvidia-smi answered is
kept as the receipt, with the loading of the driver that it is about: a reload of the module loses them all.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

NVIDIA_SMI = "nvidia-smi"
FIELDS = "uuid,persistence_mode,power.limit,power.default_limit"
#: Seconds to wait at boot until the driver answers, and for one call.
DRIVER_WAIT, CALL = 60, 30
#: What the cards' firmware rounds away, in W.
TOLERANCE = 0.5
BOOT_ID, MODULE = Path("/proc/sys/kernel/random/boot_id"), Path("/sys/module/nvidia")


def call(*words: str) -> tuple[int, str]:
    """Run nvidia-smi; exit status and both streams in one text."""
    try:
        done = subprocess.run(
            [NVIDIA_SMI, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=CALL,
            check=False,
            encoding="utf-8",
            errors="replace",
        )
    except FileNotFoundError:
        return 127, NVIDIA_SMI + " is not installed"
    except subprocess.TimeoutExpired:
        return 124, NVIDIA_SMI + " does not answer"
    return done.returncode, done.stdout.strip()


def watts(cell: str) -> float | None:
    """A cell such as "400.00 W" as a number, or None."""
    try:
        return float(cell.split()[0])
    except (IndexError, ValueError):
        return None


def cards() -> tuple[dict[str, dict[str, Any]], str]:
    """State of each card by UUID, or the reason why there is none."""
    status, text = call("--query-gpu=" + FIELDS, "--format=csv,noheader")
    found: dict[str, dict[str, Any]] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == 4 and cells[0].startswith("GPU-"):
            found[cells[0]] = {
                "persistence": cells[1] == "Enabled",
                "limit": watts(cells[2]),
                "default": watts(cells[3]),
            }
    return found, "" if found else text or f"exit status {status}"


def wait_for_cards() -> tuple[dict[str, dict[str, Any]], str]:
    """The cards, as soon as the driver answers."""
    until = time.monotonic() + DRIVER_WAIT
    while True:
        found, reason = cards()
        if found or time.monotonic() >= until:
            return found, reason
        time.sleep(1)


class Card:
    """One card's changes. receipt: what was done and what nvidia-smi said to it."""

    def __init__(self, uuid: str, state: dict[str, Any], before: dict[str, Any]) -> None:
        self.uuid, self.state, self.before = uuid, state, before
        self.receipt: dict[str, Any] = {"default_power_limit_w": state["default"]}
        self.unsupported: list[str] = []
        self.failed: list[str] = []

    def change(self, what: str, proof: Sequence[str], *words: str) -> bool:
        """One change, one call; True if the card took it. The text proves that, a status of 0 does not."""
        status, text = call("-i", self.uuid, *words)
        answer = text.replace("\n", " | ")
        print(f"{self.uuid}: {' '.join(words)}: {answer}", flush=True)
        # "Specified clock combination … is not supported" is about the value, not about the card.
        if "not supported" in text and "Specified clock combination" not in text:
            self.unsupported.append(what)
        elif status != 0 or not any(part in text for part in proof):
            self.failed.append(f"{what}: {text or status}")
        else:
            self.receipt[what + "_receipt"] = text.splitlines()[0]
            return True
        return False

    def persistence(self, wanted: bool) -> None:
        """Keep the driver loaded between clients, without which limits are lost when the last one ends."""
        changed_before = self.before.get("persistence_changed", False)
        if wanted and not self.state["persistence"]:
            if self.change("persistence", ["nabled persistence mode", "already Enabled"], "-pm", "1"):
                self.receipt["persistence_changed"] = True
        elif wanted:
            self.receipt["persistence_changed"] = changed_before
        elif changed_before and self.state["persistence"]:
            self.change("persistence", ["isabled persistence mode", "already Disabled"], "-pm", "0")

    def power(self, wanted: float | None) -> None:
        """Limit in W; None: the default, if it was us who changed it."""
        now = self.state["limit"]
        dropped = wanted is None and "power_limit_w" in self.before
        goal = self.state["default"] if dropped else wanted
        if goal is None:
            return
        if now is None:
            self.unsupported.append("power limit")
            return
        held = abs(now - goal) <= TOLERANCE
        if not held:
            held = self.change("power limit", ["was set to", "already"], "-pl", f"{goal:g}")
        if held and wanted is not None:
            self.receipt["power_limit_w"] = wanted

    def clocks(self, wanted: list[int] | None) -> None:
        """Graphics clock range [min, max] in MHz; None: free again, if it was us who locked it."""
        if wanted:
            if self.change("clocks", ["GPU clocks set to"], "-lgc", f"{wanted[0]},{wanted[1]}"):
                self.receipt["clocks_mhz"] = wanted
        elif "clocks_mhz" in self.before:
            self.change("clocks", ["reset GPU clocks", "All done"], "-rgc")

    def memory(self, wanted: int | None) -> None:
        """Memory clock in MHz; None: free again, if it was us who locked it."""
        if wanted:
            if self.change("memory clocks", ["Memory clocks set to"], "-lmc", f"{wanted},{wanted}"):
                self.receipt["memory_clock_mhz"] = wanted
        elif "memory_clock_mhz" in self.before:
            self.change("memory clocks", ["reset", "All done"], "-rmc")


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object, or {} where there is no such file."""
    try:
        value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return value
    except FileNotFoundError:
        return {}


def read_receipts(path: Path) -> dict[str, Any]:
    """The receipts, none where their file is damaged: what they stood for is done again."""
    try:
        found = read_json(path)
    except ValueError:
        return {}
    known = found.get("cards", {}) if isinstance(found, dict) else None
    return found if isinstance(known, dict) and all(isinstance(one, dict) for one in known.values()) else {}


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Replace the file at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    new.replace(path)


def driver_load() -> str:
    """The boot and the loading of the module; as boxwright/ansible/module_utils/driver_load.py says it."""
    try:
        inode = MODULE.stat().st_ino
    except OSError:
        inode = 0
    try:
        boot = BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        boot = ""
    return f"{boot}:{inode}"


def apply(wanted: dict[str, Any], receipts_path: Path) -> int:
    """Bring every card to `wanted` (by UUID); cards that left the declaration go back to their defaults."""
    before = read_receipts(receipts_path).get("cards", {})
    present, reason = wait_for_cards()
    problems = [] if present else ["the driver does not answer: " + reason]
    receipts: dict[str, Any] = {}
    unsupported: dict[str, Any] = {}
    for uuid in sorted({*wanted, *before} & set(present)):
        card, goal = Card(uuid, present[uuid], before.get(uuid, {})), wanted.get(uuid, {})
        # Persistence first: without it the others are lost at once on an idle card.
        card.persistence(goal.get("persistence", False))
        card.power(goal.get("power_limit_w"))
        card.clocks(goal.get("clocks_mhz"))
        card.memory(goal.get("memory_clock_mhz"))
        if uuid in wanted:
            receipts[uuid] = card.receipt
        if card.unsupported:
            unsupported[uuid] = sorted(set(card.unsupported))
        problems += [f"{uuid}: {text}" for text in card.failed]
    if present:
        problems += [f"{uuid} is declared but not there" for uuid in sorted(set(wanted) - set(present))]
    write_json(
        receipts_path,
        {
            "driver_load": driver_load(),
            "cards": receipts,
            "unsupported": unsupported,
            "problems": problems,
        },
    )
    for text in problems:
        print(text, file=sys.stderr)
    return 1 if problems else 0


def main() -> int:
    """Run the command line; the exit status."""
    if len(sys.argv) != 4 or sys.argv[1] not in ("apply", "reset"):
        print(__doc__, file=sys.stderr)
        return 2
    verb, config, receipts = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    if verb == "apply":
        return apply(read_json(config)["cards"], receipts)
    if not read_receipts(receipts):
        return 0
    status = apply({}, receipts)
    receipts.unlink()
    return status


if __name__ == "__main__":
    sys.exit(main())
