"""The package repositories that a lab's depot serves, laid out and signed as the vendor's are."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from boxwright.lab.gpu import deb
from boxwright.lab.gpu.deb import Package
from boxwright.lab.gpu.packages import cuda, driver, kernel, toolkit
from boxwright.lab.gpu.signing import Signer

DEPOT = "http://depot.boxwright.lab"
#: Paths below the root of the tree.
CUDA_PATH = "compute/cuda/repos/{distribution}/x86_64"
TOOLKIT_PATH = "libnvidia-container/stable/deb/amd64"
TOOLKIT_KEY_PATH = "libnvidia-container/gpgkey"
RUNFILE_RELEASE = "570.124.06"
RUNFILE_PATH = f"tesla/{RUNFILE_RELEASE}/NVIDIA-Linux-x86_64-{RUNFILE_RELEASE}.run"
DISTRIBUTIONS = ("debian12", "debian13")


def build(target: Path, key_file: Path | None = None) -> None:
    """Write both repositories with their keys below the directory `target`.

    The same sources and the same key give the same bytes. key_file: the secret key, made when it is missing.
    Raises UserError when gpg is missing or cannot sign.
    """
    with Signer(key_file or default_key_file()) as signer:
        key, armored = signer.public_key(), signer.public_key(armor=True)
        for distribution in DISTRIBUTIONS:
            path = CUDA_PATH.format(distribution=distribution)
            contents = [
                *driver.packages(),
                *toolkit.packages(),
                *cuda.packages(),
                kernel.dkms(),
                cuda.keyring(f"{DEPOT}/{path}/", distribution, key),
            ]
            write_flat(target / path, contents, signer, "NVIDIA", "NVIDIA CUDA")
            (target / path / "cuda-archive-keyring.gpg").write_bytes(key)
            (target / path / "3bf863cc.pub").write_bytes(armored)
        write_flat(
            target / TOOLKIT_PATH,
            toolkit.packages(),
            signer,
            "https://nvidia.github.io/libnvidia-container",
            "NVIDIA CORPORATION",
        )
        (target / TOOLKIT_KEY_PATH).write_bytes(armored)
    (target / RUNFILE_PATH).parent.mkdir(parents=True)
    (target / RUNFILE_PATH).write_bytes(driver.runfile(RUNFILE_RELEASE))
    _make_readable(target)


def write_flat(directory: Path, packages: Iterable[Package], signer: Signer, origin: str, label: str) -> None:
    """Write a flat repository: packages, index, and the signed Release file over it."""
    directory.mkdir(parents=True, exist_ok=True)
    debs = sorted(((package, deb.build(package)) for package in packages), key=lambda item: item[0].filename)
    for package, content in debs:
        (directory / package.filename).write_bytes(content)
    index = deb.packages_index(debs)
    files = {"Packages": index, "Packages.gz": deb.compress(index)}
    release = deb.release_file(files, origin, label, Architecture="x86_64", Architectures="amd64")
    for name, content in files.items() | {
        ("Release", release),
        ("Release.gpg", signer.detached(release)),
        ("InRelease", signer.inline(release)),
    }:
        (directory / name).write_bytes(content)


def default_key_file() -> Path:
    """Where the secret key of a user's labs lies: in the lab's cache."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "boxwright" / "lab" / "keys" / "package-signing.asc"


def _make_readable(target: Path) -> None:
    """A web server of another user reads the tree, whatever this user's umask is."""
    for path in [target, *target.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
