"""Boxes as `invoke init` finds them: the recorded host, with other cards and what a driver says."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from boxwright.facts import HostFacts, parse
from boxwright.facts.parsers import nvidia_smi

RECORDED = Path(__file__).parent / "facts" / "recorded" / "debian13-rtx5090-virgin.json"
GB = 1_000_000_000


@pytest.fixture(autouse=True)
def no_simulated_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test of this level may start a lab: a bare machine has no container engine."""
    monkeypatch.setenv("DOCKER_HOST", "unix:///no/engine/for/unit/tests.sock")


@pytest.fixture(autouse=True)
def own_state(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """What a run leaves on its machine (logs, ends that boxes have not had) is not left in a home."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / "state"))


@pytest.fixture
def needs_git() -> None:
    """A bare machine has no git; what asks it does without there."""
    if shutil.which("git") is None:
        pytest.skip("there is no git here")


class Card(NamedTuple):
    """A card as the bus has it, and as nvidia-smi tells it in the order of its query."""

    device: str
    name: str
    memory: int
    reserved: int
    capability: str
    power: tuple[int, int, int]  # default, min, max
    clocks: tuple[int, int]

    def row(self, index: int, driver: str) -> str:
        usual, low, high = self.power
        told = [index, f"GPU-{index}", f"NVIDIA {self.name}", driver, f"00000000:0{index + 1}:00.0"]
        told += [f"{self.memory} MiB", f"{self.reserved} MiB", "2 MiB", self.capability, "Enabled"]
        told += [f"{watts}.00 W" for watts in (usual, usual, low, high)]
        told += [f"{mhz} MHz" for mhz in (210, self.clocks[0], 405, self.clocks[1])]
        return ", ".join(map(str, [*told, 1, 4, 16, 16, "[N/A]"])) + "\n"


#: Figures of nvidia-smi recordings (facts of gpus.csv); the last two are in no catalog.
CARDS = {
    "rtx5090": Card("0x2b85", "GeForce RTX 5090", 32607, 487, "12.0", (575, 400, 600), (3090, 14001)),
    "rtx4090": Card("0x2684", "GeForce RTX 4090", 24564, 458, "8.9", (450, 150, 600), (3105, 10501)),
    "rtx3090": Card("0x2204", "GeForce RTX 3090", 24576, 434, "8.6", (350, 100, 385), (2100, 9751)),
    "a100-80gb": Card("0x20b2", "A100-SXM4-80GB", 81920, 600, "8.0", (400, 100, 400), (1410, 1593)),
    "rtx3060": Card("0x2504", "GeForce RTX 3060", 12288, 300, "8.6", (170, 100, 212), (2100, 7501)),
    "gtx1080ti": Card("0x1b06", "GeForce GTX 1080 Ti", 11264, 200, "6.1", (250, 125, 300), (1911, 5505)),
}


def raw_box(
    cards: list[str], driver: str | None = None, free: int = 400 * GB, system: str | None = None
) -> dict[str, Any]:
    """The raw answer of a box. driver: the loaded version, None for a bare box. free: bytes on its disks."""
    raw: dict[str, Any] = copy.deepcopy(json.loads(RECORDED.read_text()))
    device = raw["pci"][0]
    raw["models"], raw["images"] = [], []
    raw["pci"] = [
        dict(
            device,
            bus=f"0000:0{n + 1}:00.0",
            device=CARDS[name].device,
            driver="nvidia" if driver else "nouveau",
        )
        for n, name in enumerate(cards)
    ]
    raw["nouveau"] = bool(cards) and driver is None
    for place in raw["filesystems"]:
        place["available"] = free
    if system:
        raw["files"]["os-release"] = system
    if driver:
        rows = "".join(CARDS[name].row(n, driver) for n, name in enumerate(cards))
        raw["commands"]["cards"] = {
            "rc": 0, "stdout": rows, "stderr": "", "fields": list(nvidia_smi.CARD_FIELDS)
        }  # fmt: skip
        raw["files"]["nvidia"] = (
            f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {driver}  Release Build  (x@y)\n"
        )
        raw["files"]["module-version"] = driver + "\n"
        raw["commands"]["packages"]["stdout"] += f"nvidia-driver-cuda\t{driver}-1\tii \n"
    return raw


@pytest.fixture
def box_facts() -> Any:
    """Builds HostFacts of a box: box_facts(["rtx5090"], driver="580.105.08")."""

    def build(*arguments: Any, **more: Any) -> HostFacts:
        return parse(raw_box(*arguments, **more), "box1")

    return build
