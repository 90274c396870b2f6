"""iptables and ip6tables over {tables: {"4": {chain: [rule]}, "6": …}}, systemctl for the unit of the rules.

unit: {enabled, active}; program: the argument list that the unit runs. file: where the state is. watch: the
unit that watches firewalld, {enabled, active}.
"""

import json
import subprocess
import sys
from pathlib import Path

NAMES = ["iptables", "ip6tables", "iptables-restore", "ip6tables-restore", "systemctl"]


def run(name, words, world):
    if name == "systemctl":
        return systemctl(words, world)
    if world.get("refuses"):
        return 4, "", world["refuses"]
    chains = world["tables"]["6" if name.startswith("ip6") else "4"]
    if name.endswith("restore"):
        return restore(sys.stdin.read(), chains)
    builtin = ("INPUT", "FORWARD")
    lines = [f"-P {chain} ACCEPT" if chain in builtin else f"-N {chain}" for chain in chains]
    lines += [f"-A {chain} {rule}" for chain, rules in chains.items() for rule in rules]
    return 0, "\n".join(lines) + "\n", ""


def restore(text, chains):
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        chain, _, rule = rest.partition(" ")
        if word.startswith(":"):
            chains[word[1:]] = []
        elif word == "-A":
            chains[chain].append(rule)
        elif word == "-I":
            chains[chain].insert(0, rule.partition(" ")[2])
        elif word == "-D":
            chains[chain].remove(rule)
        elif word == "-F":
            chains[chain].clear()
        elif word == "-X":
            del chains[chain]
    return 0, "", ""


def systemctl(words, world):
    unit = world["watch"] if words[-1].endswith("-watch.service") else world["unit"]
    if unit is not world["unit"] and words[0] == "restart":
        unit["active"] = "active"
        return 0, "", ""
    if words[0] == "show":
        return 0, f"ActiveState={unit['active']}\nUnitFileState={unit['enabled']}\n", ""
    if words[0] in ("reenable", "disable"):
        unit["enabled"] = words[0].removeprefix("re") + "d"
    if words[0] in ("start", "reload-or-restart"):
        Path(world["file"]).write_text(json.dumps(world))
        done = subprocess.run(
            [sys.executable, *world["program"]], capture_output=True, text=True, check=False
        )
        world.update(json.loads(Path(world["file"]).read_text()))
        world["unit"]["active"] = "failed" if done.returncode else "active"
        return done.returncode, "", done.stderr
    if words[0] == "stop":
        unit["active"] = "inactive"
    return 0, "", ""
