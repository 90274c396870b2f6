"""apt-get update over {lists, refuses, status, conflict}: reads the one source that it is given."""

from pathlib import Path

NAMES = ["apt-get"]


def run(name, words, world):
    if "indextargets" in words:
        return (100, "", world["conflict"]) if world.get("conflict") else (0, "", "")
    options = dict(word.partition("=")[::2] for word in words if "=" in word)
    assert Path(options["Dir::Etc::sourcelist"]).read_text().count("Signed-By:") == 1
    if world.get("refuses"):
        return world.get("status", 100), "", world["refuses"]
    lists = Path(options.get("Dir::State::lists", world["lists"]))
    (lists / "there_x86%5f64_._InRelease").touch()
    return 0, "", ""
