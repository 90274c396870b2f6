"""What the tests of weights share: small checkpoints, and stand-ins for the programs beside the modules."""

import hashlib
import json
import struct
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

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
    """The files of one revision, served, and what was taken of them."""

    def __init__(self, root, files):
        self.root, self.files, self.taken = root, dict(files), []
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

    def handler(hub):
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                hub.taken.append(self.path.strip("/"))
                content = (hub.root / self.path.strip("/")).read_bytes()
                first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
                part = content[first : last + 1]
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
                self.send_header("Content-Length", str(len(part)))
                self.end_headers()
                self.wfile.write(part)

            def log_message(self, *arguments):
                pass

        return Handler


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A repository that the stand-in client knows."""
    root = tmp_path / "hub"
    root.mkdir()
    made = Hub(root, REPOSITORY)
    server = ThreadingHTTPServer(("127.0.0.1", 0), made.handler())
    serving = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    serving.start()
    monkeypatch.setenv("TEST_HUB", f"http://127.0.0.1:{server.server_port}")
    yield made
    server.shutdown()
    server.server_close()


#: Speaks the protocol of roles/model_weights/files/resolve.py for a hub that is none.
CLIENT = """
import json, os, sys
job = json.loads(sys.stdin.readline())
def say(**event):
    print(json.dumps(event), flush=True)
fault = os.environ.get("TEST_FAULT")
if fault == "error":
    say(event="error", kind="unauthorized", status=401, detail="told " + os.environ.get("HF_TOKEN", "nobody"))
    sys.exit(1)
say(event="ready")
for line in sys.stdin:
    for path in json.loads(line)["files"]:
        if fault == "crash" and path.endswith(".safetensors"):
            sys.stderr.write("Segmentation fault, token " + os.environ.get("HF_TOKEN", "") + "\\n")
            sys.exit(139)
        say(event="file", path=path, url=os.environ["TEST_HUB"] + "/" + path, size=None, etag="")
"""
