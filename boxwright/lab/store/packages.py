"""Python packages for another machine than this one: downloaded and unpacked by this machine's own pip.

pip is asked because it knows the user's settings (index, mirror, proxy, certificates, local wheel folders).
It runs under the controller's Python and chooses for the Python of the target.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from boxwright.errors import UserError

#: Where the CPU builds of torch are published (they are not on the package index).
TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
#: The glibc releases, 2.x, whose wheels run on Debian 12 (2.36) and later.
GLIBC = range(36, 16, -1)
#: Seconds that one pip may take; the largest download is 190 MB.
TIMEOUT = 1800
#: pips at once; each spends most of its time waiting for the index.
AT_ONCE = 4


def download(
    requirements: Sequence[str], folder: Path, python: str, *, index: str | None = None, hashes: bool = False
) -> None:
    """Put the wheels of exactly these requirements (no dependencies) into a folder.

    python: "3.11"; index: one more index; hashes: each requirement carries its --hash. Raises UserError.
    """
    shares = [list(requirements[share::AT_ONCE]) for share in range(AT_ONCE)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        running = [pool.submit(_download, share, folder, python, index, hashes) for share in shares if share]
        for each in running:
            each.result()


def download_torch(requirement: str, folder: Path, python: str) -> None:
    """Put the wheel of a CPU build of torch into a folder: from where pip is set to look, else from torch's
    index.

    Raises UserError that tells of both when neither has it.
    """
    try:
        download([requirement], folder, python)
    except UserError as first:
        try:
            download([requirement], folder, python, index=TORCH_INDEX)
        except UserError as second:
            raise UserError(
                f"{requirement} is not to be had",
                why=f"where pip is set to look: {first.why}\n  {TORCH_INDEX}: {second.why}",
                ways_out=(
                    f"let this machine reach {TORCH_INDEX}",
                    "put the wheel into a folder and name it to pip: pip config set global.find-links FOLDER",
                ),
            ) from second


def download_source(requirement: str, folder: Path) -> Path:
    """Put the source archive of one requirement into a folder; its path. Raises UserError."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        # Only this package as source: what pip takes to read its metadata (setuptools) may come as wheels.
        name = requirement.partition("==")[0]
        run(
            ["download", "--no-deps", f"--no-binary={name}", "--dest", place, requirement],
            f"could not download {requirement}",
        )
        archive = next(Path(place).iterdir())
        return archive.replace(folder / archive.name)


def install(wheels: Sequence[Path], folder: Path, python: str) -> None:
    """Unpack wheels into a folder that becomes a site directory of the target. Raises UserError."""
    run(
        [
            "install",
            "--no-deps",
            "--no-index",
            "--no-compile",
            "--target",
            str(folder),
            *_target(python),
            *map(str, wheels),
        ],
        "could not unpack the downloaded packages",
    )


def install_here(requirement: str, folder: Path) -> None:
    """Install a package and what it needs into a folder, for the Python that runs this. Raises UserError."""
    run(
        ["install", "--only-binary=:all:", "--target", str(folder), requirement],
        f"could not install {requirement}",
    )


def run(arguments: Sequence[str], what: str) -> str:
    """Run pip; its standard output. what: the failure in words. Raises UserError with pip's errors."""
    argv = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired as error:
        raise UserError(what, why=f"pip was not done after {TIMEOUT} s") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR:")]
        told = [line if len(line) < 300 else line[:300] + " …" for line in lines or done.stderr.splitlines()]
        raise UserError(
            what,
            why="\n  ".join(told[-4:]) or f"pip ended with {done.returncode}",
            ways_out=("see that pip reaches its index: pip download --no-deps six",),
        )
    return done.stdout


def _download(
    requirements: Sequence[str], folder: Path, python: str, index: str | None, hashes: bool
) -> None:
    named = requirements[0].split()[0] if len(requirements) == 1 else f"{len(requirements)} packages"
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as listed:
        listed.write("\n".join(requirements) + "\n")
        listed.flush()
        run(
            [
                "download",
                "--no-deps",
                "--quiet",
                "--dest",
                str(folder),
                *_target(python),
                *(["--extra-index-url", index] if index else []),
                *(["--require-hashes"] if hashes else []),
                "--requirement",
                listed.name,
            ],
            f"could not download {named}",
        )


def _target(python: str) -> list[str]:
    """pip's words for the machine that the packages are for: CPython on Debian 12 or later, x86-64."""
    tag = "cp" + python.replace(".", "")
    platforms = [f"manylinux_2_{minor}_x86_64" for minor in GLIBC]
    platforms += ["manylinux2014_x86_64", "any"]
    return [
        "--only-binary=:all:",
        "--python-version",
        python,
        "--implementation",
        "cp",
        *(word for abi in (tag, "abi3", "none") for word in ("--abi", abi)),
        *(word for name in platforms for word in ("--platform", name)),
    ]
