"""The real package manager over an installation root; what it answers is kept, see recordings.py."""

import importlib.util
import os
import subprocess
from pathlib import Path

NAMES = ["dnf", "rpm", "apt-get", "apt-cache", "apt-mark", "dpkg", "dpkg-query"]
spec = importlib.util.spec_from_file_location("replayed", Path(__file__).with_name("replayed.py"))
replayed = importlib.util.module_from_spec(spec)
spec.loader.exec_module(replayed)


def run(name, words, world):
    root = Path(world["root"])
    before, call = files(root), replayed.told(name, words)
    done = subprocess.run(
        [f"/usr/bin/{name}", *world["options"].get(name, []), *replayed.unwatched(words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, **world.get("environment", {})},
    )
    # Where the root and the packages lie is of this run only.
    stdout, stderr = (
        text.replace(str(root), "").replace(world["repository"], "/repository")
        for text in (done.stdout, done.stderr)
    )
    changed = {path: text for path, text in files(root).items() if before.get(path) != text}
    answer = {"call": call, "rc": done.returncode, "stdout": stdout, "stderr": stderr, "files": changed}
    world["answers"].append(answer)
    return done.returncode, done.stdout, done.stderr


def files(root):
    found = sorted((root / "etc/dnf/modules.d").glob("*.module"))
    return {f"/{path.relative_to(root)}": path.read_text() for path in found}
