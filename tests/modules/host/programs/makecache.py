"""dnf makecache and rpm's keys over {refuses, keys, seen}."""

import re
from pathlib import Path

NAMES = ["dnf", "rpm"]


def run(name, words, world):
    if name == "dnf":
        directory = next((word.partition("reposdir=")[2] for word in words if "reposdir=" in word), None)
        found = Path(directory or world["repos"]).glob("*.repo")
        world["seen"] = "".join(path.read_text() for path in found)
        return (1, "", world["refuses"]) if world.get("refuses") else (0, "", "")
    if words[0] == "-q":
        return 0, "".join(f"{key}\n" for key in world["keys"]), ""
    if words[0] == "--import":
        world["keys"].append("16d61589" if world.get("other") else "b0dbc62d")
    else:
        world["keys"].remove(re.sub("^gpg-pubkey-", "", words[-1]))
    return 0, "", ""
