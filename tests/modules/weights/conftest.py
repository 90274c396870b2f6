"""What the tests of weights share: small checkpoints, and stand-ins for the programs beside the modules."""

import hashlib
import json
import struct
import sys

import pytest


def safetensors(tensors):
    """The bytes of a safetensors file: {name: (dtype, shape, width in bytes)}."""
    header, offset = {}, 0
    for name, (dtype, shape, width) in tensors.items():
        size = width
        for side in shape:
            size *= side
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(n % 251 for n in range(offset))


#: A whole small repository: what a hub would serve.
REPOSITORY = {
    "config.json": json.dumps({"model_type": "qwen3", "hidden_size": 64, "intermediate_size": 128}).encode(),
    "tokenizer.json": b"{}",
    "model.safetensors": safetensors({"model.layers.0.mlp.up_proj.weight": ("F16", [64, 64], 2)}),
    "README.md": b"# Tiny\n",
}


@pytest.fixture
def prepared(tmp_path):
    """An environment that counts as made: prepared(wanted) writes its stamp; this interpreter is in it."""
    from ansible.module_utils import python_environment

    def prepare(wanted):
        programs = tmp_path / "venvs" / wanted.path.rsplit("/", 1)[-1] / "bin"
        programs.mkdir(parents=True)
        (programs / "python").symlink_to(sys.executable)
        stamp = {"digest": wanted.digest(), "packages": {"tool": "1.0"}}
        (programs.parent / python_environment.STAMP).write_text(json.dumps(stamp))

    return prepare


class Hub:
    """The files of one revision and what was taken of them."""

    def __init__(self, root, files):
        self.root, self.files = root, dict(files)
        self.write()

    def write(self):
        for path, content in self.files.items():
            target = self.root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)

    def weights(self, store, **more):
        """As the plan has it; the hub publishes the SHA-256 of weights only."""
        revision = "0123456789abcdef0123456789abcdef01234567"
        files = [
            {
                "path": path,
                "size": len(content),
                "sha256": hashlib.sha256(content).hexdigest() if path.endswith(".safetensors") else None,
            }
            for path, content in self.files.items()
        ]
        return {
            "kind": "hub",
            "repo": "acme/tiny",
            "revision": revision,
            "endpoint": "http://hub.example",
            "files": files,
            "directory": f"{store}/acme--tiny/{revision}",
            **more,
        }

    @property
    def taken(self):
        log = self.root.parent / "taken"
        return log.read_text().split() if log.exists() else []


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A repository that the stand-in client copies from."""
    root = tmp_path / "hub"
    root.mkdir()
    monkeypatch.setenv("TEST_HUB", str(root))
    return Hub(root, REPOSITORY)


#: Speaks the protocol of roles/model_weights/files/fetch.py, copying from a directory instead of a hub.
CLIENT = """
import hashlib, json, os, sys
job = json.loads(sys.stdin.readline())
hub = os.environ["TEST_HUB"]
def say(**event):
    print(json.dumps(event), flush=True)
def fetch(files):
    for file in files:
        target = os.path.join(job["target"], file["path"])
        content = open(os.path.join(hub, file["path"]), "rb").read()
        os.makedirs(os.path.dirname(target), exist_ok=True)
        open(target, "wb").write(content)
        open(hub + "/../taken", "a").write(file["path"] + "\\n")
        say(event="file", path=file["path"], sha256=hashlib.sha256(content).hexdigest())
fault = os.environ.get("TEST_FAULT")
if fault == "error":
    say(event="error", kind="unauthorized", status=401, detail="told " + os.environ.get("HF_TOKEN", "nobody"))
    sys.exit(1)
fetch([file for file in job["files"] if not file["path"].endswith(".safetensors")])
say(event="described")
if sys.stdin.readline().strip() == "go":
    if fault == "crash":
        sys.stderr.write("Segmentation fault, token " + os.environ.get("HF_TOKEN", "") + "\\n")
        sys.exit(139)
    fetch([file for file in job["files"] if file["path"].endswith(".safetensors")])
    say(event="done")
"""
