"""A package manager as it once answered, call by call, and what it left in files; see recordings.py."""

import json
import re
from pathlib import Path

NAMES = ["dnf", "rpm", "apt-get", "apt-cache", "apt-mark", "dpkg", "dpkg-query"]


def unwatched(words):
    """The words without the pipe on which apt-get tells how far it is: it is another one each time."""
    pipes = [place for place, word in enumerate(words) if word.startswith("APT::Status-Fd=")]
    return [word for place, word in enumerate(words) if not {place, place + 1} & set(pipes)]


def told(name, words):
    """A call as it is compared: scripts by their text, temporary places by what they are for."""
    if name == "dnf" and "shell" in words:
        words = [*words[:-1], Path(words[-1]).read_text()]
    return [name, *(re.sub(r"/\S*/boxwright-pins-\w+", "PINS", word) for word in unwatched(words))]


def run(name, words, world):
    answers, call = world["answers"], told(name, words)
    place = len(world["calls"]) - 1
    said = answers[place] if place < len(answers) else {}
    if said.get("call") != call:
        expected = json.dumps(said.get("call"), indent=1)
        return 99, "", f"Error: recorded was {expected}, asked is {json.dumps(call, indent=1)}\n"
    for path, text in said["files"].items():
        place = Path(world["root"] + path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return said["rc"], said["stdout"], said["stderr"]
