"""What the depot serves, made in the cache: package repositories, wheels, models, and the engine's image."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import docker

from boxwright.lab import store
from boxwright.lab.depot import Trees
from boxwright.lab.gpu import repository
from boxwright.lab.state import LABEL, Lab, Report, Stopwatch, locked
from boxwright.lab.store import StoreTree, engine_image

GPU_SOURCES = Path(__file__).with_name("gpu")
#: Seconds after which a tree that nothing mounts is removed: another checkout may be about to mount it.
UNUSED_FOR = 3600


@dataclass(frozen=True)
class Supply:
    """The trees in the making. engine_image: done when the image can be pushed."""

    packages: Future[Path]
    store: Future[StoreTree]
    engine_image: Future[None]

    @classmethod
    def start(cls, pool: ThreadPoolExecutor, lab: Lab, report: Report) -> Supply:
        """Begin to make what is missing; the engine's image first, since it takes the longest."""
        return cls(
            engine_image=pool.submit(engine_image.build, lab.cache, report),
            store=pool.submit(store.build, lab.cache, report),
            packages=pool.submit(package_tree, lab, report),
        )

    @property
    def busy(self) -> bool:
        """Whether anything is still being made."""
        return any(part.running() for part in (self.packages, self.store, self.engine_image))

    def trees(self) -> Trees:
        """The trees that the depot mounts, waited for."""
        stored = self.store.result()
        return Trees(www=self.packages.result(), wheels=stored.wheels, models=stored.models)

    def push(self, lab: Lab, registry: str, report: Report) -> None:
        """Have the engine's image in the registry at the URL `registry`."""
        self.engine_image.result()
        engine_image.push(registry, lab.cache, report)


def package_tree(lab: Lab, report: Report) -> Path:
    """The package repositories that belong to these sources of the simulated driver, made when missing."""
    target = lab.cache / "www" / digest(GPU_SOURCES)
    if not target.exists():
        with locked(target.with_suffix(".lock"), report, "making the package repositories"):
            if not target.exists():
                watch = Stopwatch()
                for left in target.parent.glob("*.tmp"):  # of runs that were killed
                    shutil.rmtree(left)
                temporary = target.with_suffix(f".{os.getpid()}.tmp")
                temporary.mkdir()
                repository.build(temporary)
                temporary.replace(target)
                report(f"lab: package repositories made in {watch}")
    os.utime(target)
    return target


def prune(client: docker.DockerClient, directory: Path, keep: Path) -> None:
    """Remove the trees of a directory but `keep`, those that any lab's depot mounts, and those just used."""
    mounted = {
        Path(mount.get("Source", ""))
        for container in client.containers.list(all=True, filters={"label": LABEL})
        for mount in container.attrs.get("Mounts") or []
    }
    for tree in directory.iterdir():
        if tree.is_dir() and tree != keep and tree not in mounted and age(tree) > UNUSED_FOR:
            shutil.rmtree(tree)
            tree.with_suffix(".lock").unlink(missing_ok=True)


def age(path: Path) -> float:
    """Seconds since a file or directory was made or used."""
    return time.time() - path.stat().st_mtime


def digest(directory: Path) -> str:
    """Twelve hex digits that change with any source file below a directory."""
    total = hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            content = path.read_bytes()
            total.update(
                f"{path.relative_to(directory)} {path.stat().st_mode & 0o111} {len(content)}\n".encode()
            )
            total.update(content)
    return total.hexdigest()[:12]
