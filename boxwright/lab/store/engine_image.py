"""The engine's container image: used like the official vllm/vllm-openai, with vLLM's CPU build inside."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

from boxwright.lab.state import Report, Stopwatch, locked, write_atomically
from boxwright.lab.store import environment, layers
from boxwright.lab.store.cache import digest, sources
from boxwright.lab.store.environment import EARLIER, SETTINGS, SITE, TIME, VLLM
from boxwright.lab.store.layers import Layer
from boxwright.lab.store.registry import Registry, digest_of, manifest

NAME = "vllm/vllm-openai"
#: The official image's tags of each release, and the CUDA release that each tells of in its environment.
TAGS = {
    VLLM: {f"v{VLLM}": "13.0.2", f"v{VLLM}-cu129": "12.9.1"},
    **{release: {f"v{release}": "13.0.2"} for release in EARLIER},
}
#: The user that the official image has since 0.22, for who runs it as another than root.
USER = b"vllm:x:2000:0::/home/vllm:/usr/sbin/nologin\n"
#: The sources that make an image.
MADE_BY = ("environment.py", "elf.py", "int4_product.py", "layers.py", "engine_image.py")
COMMAND = b"""\
#!/usr/bin/python3
import sys

from vllm.entrypoints.cli.main import main

if __name__ == "__main__":      # workers import this file anew
    sys.exit(main())
"""


def recipe() -> str:
    """Twelve hex digits that change with any of the images: by the same tags, other sources mean others."""
    pins = [pin for release in TAGS for pin in environment.requirements(release)]
    return digest(*pins, *sources(*MADE_BY))


def build(cache: Path, report: Report, release: str = VLLM) -> None:
    """Have everything in the cache that the image is made of. Raises UserError when it cannot be made."""
    image_layers(cache, report, release)


def push(registry_url: str, cache: Path, report: Report, release: str = VLLM) -> None:
    """Have a release's image under all its tags in a registry; what is there is not sent again.

    Raises UserError.
    """
    registry = Registry(registry_url, NAME)
    parts = image_layers(cache, report, release)
    wanted = {tag: configuration(cuda, parts, release) for tag, cuda in TAGS[release].items()}
    manifests = {tag: manifest(config, parts) for tag, config in wanted.items()}
    missing = [tag for tag, content in manifests.items() if registry.digest_of(tag) != digest_of(content)]
    if not missing:
        return
    watch = Stopwatch()
    for layer in parts:
        registry.put_layer(layer)
    for tag in missing:
        registry.put_bytes(wanted[tag])
        registry.put_manifest(tag, manifests[tag])
    report(f"lab: {NAME}:{', '.join(missing)} put into the registry in {watch}")


def image_layers(cache: Path, report: Report, release: str = VLLM) -> list[Layer]:
    """The image's layers: the base system; the packages; their byte code and the command `vllm`."""
    site = environment.ensure(cache, report, release)  # makes the base beside the packages
    base = environment.base(report)
    # Layers differ with the code that makes them; the packages' own digest is in the directory's name.
    code = digest(*sources("engine_image.py", "layers.py"))

    def packed(byte_code: bool) -> Iterator[bytes]:
        def wanted(path: Path) -> bool:
            return ("__pycache__" in path.parts) is byte_code

        files = [("/usr/local/bin/vllm", COMMAND, 0o755), accounts(base)] if byte_code else []
        return layers.from_tree(site, SITE, TIME, wanted, files)

    readers: dict[str, Callable[[], Iterator[bytes]]] = {
        base.name: lambda: layers.from_file(base),
        f"packages {code}": lambda: packed(byte_code=False),
        f"byte code {code}": lambda: packed(byte_code=True),
    }
    # Digests are kept: to know them means to read all of it, 1.3 GB.
    record = site.parent / "layers.json"
    with locked(site.parent / "layers.lock", report, "reading the engine's layers"):
        known = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
        if set(known) != set(readers):
            found = {name: Layer.of(read) for name, read in readers.items()}
            known = {name: {"digest": layer.digest, "size": layer.size} for name, layer in found.items()}
            write_atomically(record, json.dumps(known, indent=1))
    return [Layer(known[name]["digest"], known[name]["size"], read) for name, read in readers.items()]


def accounts(base: Path) -> tuple[str, bytes, int]:
    """The file of the image's users, as layers take it. base: the base system, a tar archive."""
    with tarfile.open(base) as archive:
        names = {member.name.removeprefix("./"): member for member in archive}
        known = archive.extractfile(names["etc/passwd"])
        return "/etc/passwd", (known.read() if known else b"") + USER, 0o644


def configuration(cuda: str, parts: list[Layer], release: str = VLLM) -> bytes:
    """The image's configuration. cuda: the CUDA release that its environment names."""
    paths = (
        "/usr/local/nvidia/bin",
        "/usr/local/cuda/bin",
        "/usr/local/sbin",
        "/usr/local/bin",
        "/usr/sbin",
        "/usr/bin",
        "/sbin",
        "/bin",
    )
    variables = {
        "PATH": ":".join(paths),
        "CUDA_VERSION": cuda,
        "NVIDIA_REQUIRE_CUDA": f"cuda>={cuda.rpartition('.')[0]}",
        "NVIDIA_VISIBLE_DEVICES": "all",
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
        "LD_LIBRARY_PATH": "/usr/local/nvidia/lib:/usr/local/nvidia/lib64",
        "LANG": "C.UTF-8",
        "VLLM_USAGE_SOURCE": "production-docker-image",
        **SETTINGS,
    }
    labels = {
        "org.opencontainers.image.title": "vLLM's CPU build for the Boxwright lab",
        "org.opencontainers.image.version": release,
        "maintainer": "Boxwright",
    }
    created = "2026-01-01T00:00:00Z"
    return json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "created": created,
            "config": {
                "Env": [f"{name}={value}" for name, value in variables.items()],
                "Labels": labels,
                "Entrypoint": ["vllm", "serve"],
                "WorkingDir": "/vllm-workspace",
            },
            "rootfs": {"type": "layers", "diff_ids": [layer.digest for layer in parts]},
            "history": [{"created": created, "created_by": "boxwright.lab.store"} for _ in parts],
        },
        sort_keys=True,
    ).encode()
