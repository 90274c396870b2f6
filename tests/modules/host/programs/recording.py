"""The real dnf and rpm over an installation root; what they answer is kept, see recordings.py."""

import subprocess
from pathlib import Path

NAMES = ["dnf", "rpm"]


def run(name, words, world):
    root = Path(world["root"])
    before = files(root)
    options = world["options"] if name == "dnf" else ["--root", str(root)]
    done = subprocess.run(
        [f"/usr/bin/{name}", *options, *words], capture_output=True, text=True, check=False, timeout=120
    )
    if name == "dnf" and "shell" in words:
        words = [*words[:-1], Path(words[-1]).read_text()]
    world["answers"].append(
        {
            "call": [name, *words],
            "rc": done.returncode,
            "stdout": done.stdout,
            "stderr": done.stderr,
            "files": {path: text for path, text in files(root).items() if before.get(path) != text},
        }
    )
    return done.returncode, done.stdout, done.stderr


def files(root):
    found = sorted((root / "etc/dnf/modules.d").glob("*.module"))
    return {f"/{path.relative_to(root)}": path.read_text() for path in found}
