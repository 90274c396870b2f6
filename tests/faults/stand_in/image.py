"""The image of the engine that misbehaves: the lab engine's base system with a few lines of Python."""

import hashlib
import json
from pathlib import Path

from boxwright.lab.store import engine_image, environment, layers
from boxwright.lab.store.layers import Layer
from boxwright.lab.store.registry import Registry, manifest

#: A mirror of the official image, as its name says.
NAME, TAG = "stand-in/vllm/vllm-openai", "v0.31.0"
SITE = environment.SITE
ENGINE = Path(__file__).with_name("engine.py")
FILES = {
    "/usr/local/bin/vllm": b"#!/usr/bin/python3\nfrom vllm.entrypoints.cli.main import main\nmain()\n",
    f"{SITE}/vllm/__init__.py": b"",
    f"{SITE}/vllm/entrypoints/__init__.py": b"",
    f"{SITE}/vllm/entrypoints/cli/__init__.py": b"",
    f"{SITE}/vllm/entrypoints/cli/serve.py": (
        b"from vllm import stand_in\n\n\nclass ServeSubcommand:\n    cmd = staticmethod(stand_in.serve)\n"
    ),
    f"{SITE}/vllm/entrypoints/cli/main.py": b"from vllm.stand_in import main\n",
    f"{SITE}/vllm/stand_in.py": ENGINE.read_bytes(),
}


def push(registry_url, empty, tag=TAG, padding=0):
    """Put the image into a registry. empty: a directory without files; padding: bytes that fill its layer."""
    base = environment.base(print)
    files = [(name, content, 0o755) for name, content in FILES.items()]
    files.append(engine_image.accounts(base))
    files += [("/srv/padding", bytes(padding), 0o644)] if padding else []

    def added():
        return layers.from_tree(empty, "/srv", environment.TIME, lambda path: True, files)

    parts = [Layer.of(lambda: layers.from_file(base)), Layer.of(added)]
    registry = Registry(registry_url, NAME)
    for part in parts:
        registry.put_layer(part)
    known = json.loads(engine_image.configuration("13.0.2", parts))
    known["config"]["Labels"]["org.opencontainers.image.version"] = tag.removeprefix("v")
    configuration = json.dumps(known, sort_keys=True).encode()
    registry.put_bytes(configuration)
    content = manifest(configuration, parts)
    registry.put_manifest(tag, content)
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
