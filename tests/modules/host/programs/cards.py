"""nvidia-smi over {cards: {uuid: …}, broken, unsupported}, systemctl for the unit that calls the program.

unit: {enabled, active, words}; words: the program and what comes after its verb. file: where the state is.
"""

import json
import subprocess
import sys
from pathlib import Path

NAMES = ["nvidia-smi", "systemctl"]
CELLS = {
    "index": "{index}",
    "uuid": "{uuid}",
    "name": "{name}",
    "persistence_mode": "{persistence}",
    "power.limit": "{limit}",
    "power.default_limit": "{default}",
    "power.min_limit": "{low}",
    "power.max_limit": "{high}",
    "clocks.max.graphics": "{max_clock} MHz",
    "clocks.max.memory": "{max_memory} MHz",
    "pci.bus_id": "{bus}",
    "utilization.gpu": "{utilization} %",
    "clocks.current.graphics": "{graphics} MHz",
    "clocks.current.memory": "{memory} MHz",
    "driver_version": "{driver}",
}


def run(name, words, world):
    return systemctl(words, world) if name == "systemctl" else nvidia_smi(words, world)


def nvidia_smi(words, world):
    if world.get("broken"):
        return world["broken"][0], world["broken"][1], ""
    if words[0].startswith("--query-gpu="):
        fields = words[0].partition("=")[2].split(",")
        cards = [dict(card, uuid=uuid) for uuid, card in world["cards"].items()]
        rows = [", ".join(CELLS[field].format(**card) for field in fields) for card in cards]
        return 0, "".join(row + "\n" for row in rows), world.get("lost", "")
    card, what = world["cards"][words[1]], words[2]
    if what in world.get("unsupported", []):
        text = f"Changing this is not supported for GPU: {words[1]}.\nTreating as warning and moving on.\n"
        return 0, text, ""
    if what == "-pm":
        card["persistence"] = "Enabled" if words[3] == "1" else "Disabled"
        return 0, f"{card['persistence']} persistence mode for GPU {words[1]}.\nAll done.\n", ""
    if what == "-pl":
        if world.get("silent"):
            return 0, "All done.\n", ""
        old, card["limit"] = card["limit"], f"{float(words[3]):.2f} W"
        return 0, f"Power limit for GPU {words[1]} was set to {card['limit']} from {old}.\nAll done.\n", ""
    if what == "-lgc":
        low, high = words[3].split(",")
        if int(high) < 210:
            text = (
                f'Specified clock combination "(gpuClkMin {low}, gpuClkMax {high})" is not supported for GPU '
                f"{words[1]}. Run 'nvidia-smi -q -d SUPPORTED_CLOCKS' to see list of supported clocks\n"
            )
            return 2, text, ""
        card["clocks"] = words[3]
        return (
            0,
            f'GPU clocks set to "(gpuClkMin {low}, gpuClkMax {high})" for GPU {words[1]}\nAll done.\n',
            "",
        )
    if what == "-lmc":
        card["memory_lock"] = words[3]
        low, high = words[3].split(",")
        text = f'Memory clocks set to "(memClkMin {low}, memClkMax {high})" for GPU {words[1]}\nAll done.\n'
        return 0, text, ""
    card[{"-rgc": "clocks", "-rmc": "memory_lock"}[what]] = None
    return 0, "All done.\n", ""


def systemctl(words, world):
    unit = world["unit"]
    if words[0] == "show":
        return 0, f"ActiveState={unit['active']}\nUnitFileState={unit['enabled']}\n", ""
    if words[0] == "reenable":
        unit["enabled"] = "enabled"
    verb = {"restart": "apply", "reload": "apply", "disable": "reset"}.get(words[0])
    if verb is None:
        return 0, "", ""
    unit.update({"active": "inactive", "enabled": "disabled"} if verb == "reset" else {"active": "active"})
    script, *paths = unit["words"]
    Path(world["file"]).write_text(json.dumps(world))
    done = subprocess.run([sys.executable, script, verb, *paths], capture_output=True, text=True, check=False)
    world.update(json.loads(Path(world["file"]).read_text()))
    if done.returncode:
        world["unit"]["active"] = "failed"
    return done.returncode, "", "Job failed. See journalctl.\n" if done.returncode else ""
