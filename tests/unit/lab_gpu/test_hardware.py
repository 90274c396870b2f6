"""What is put into a host: complete, and in the Python that old hosts have."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import pytest

from boxwright.lab import rigs
from boxwright.lab.gpu import hardware, source
from boxwright.lab.payload import links

PAYLOAD = Path(source.__file__).with_name("payload")
SOURCES = [*sorted(PAYLOAD.rglob("*.py")), PAYLOAD / "programs/nvidia-smi"]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PAYLOAD)))
def test_host_code_is_python_3_9_of_the_standard_library(path):
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))
    for node in ast.walk(tree):
        modules = (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module]
            if isinstance(node, ast.ImportFrom) and not node.level
            else []
        )
        assert {module.split(".")[0] for module in modules} <= set(sys.stdlib_module_names) | {"labgpu"}


def test_every_rig_gives_a_payload():
    for name in rigs.names():
        files = {file.path: file for file in hardware.files(rigs.load(name, "box"))}
        cards = json.loads(files["/etc/lab-gpu/rig.json"].content)["cards"]
        assert len({card["uuid"] for card in cards}) == len(cards)
        assert links(files["/etc/systemd/system/lab-gpu.service"]) == [
            "/etc/systemd/system/sysinit.target.wants/lab-gpu.service"
        ]


def test_headers_are_those_of_the_kernel_named():
    files = {
        file.path: file.content for file in hardware.files(rigs.load("none", "box"), kernel="6.1.0-40-amd64")
    }
    index = files["/usr/lib/lab-gpu/kernel/Packages"].decode()
    assert "Package: linux-headers-6.1.0-40-amd64\n" in index
    assert "Depends: linux-headers-6.1.0-40-amd64 (= 6.1.0-99+lab1)\n" in index
