"""Matrices as recorded."""

from __future__ import annotations

import os

import pytest

CORES = f"0-{(os.cpu_count() or 1) - 1}"


@pytest.mark.parametrize(("rig", "link"), [("rtx3090x2", "NV4"), ("rtx5090x2", "PHB"), ("rtx4090x2", "PHB")])
def test_matrix(make_driven, rig, link):
    lines = make_driven(rig).smi("topo", "-m").stdout.splitlines()
    assert lines[0] == "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID"
    assert lines[1] == f"GPU0\t X \t{link}\t{CORES}\t0\t\tN/A"
    assert lines[2] == f"GPU1\t{link}\t X \t{CORES}\t0\t\tN/A"
    assert "Legend:" in lines


def test_newer_branches_underline_the_header(make_driven):
    text = make_driven("rtx5090", "595.71.05").smi("topo", "-m").stdout
    assert text.startswith(
        f"\x1b[4mGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\nGPU0\t X \t{CORES}\t0\t\tN/A\n"
    )


@pytest.mark.parametrize(("rig", "word"), [("rtx5090x2", "GNS"), ("rtx4090x2", "CNS"), ("rtx3090x2", "OK")])
def test_peer_to_peer(make_driven, rig, word):
    lines = make_driven(rig).smi("topo", "-p2p", "r").stdout.splitlines()
    assert lines[1] == f" GPU0\tX\t{word}\t"


@pytest.mark.parametrize(
    ("rig", "line", "count"),
    [
        ("rtx3090x2", "\t Link 0: 14.062 GB/s", 2),
        ("rtx4090x2", "Device does not have or support Nvlink", 2),
        ("rtx5090", "Device does not have or support Nvlink", 1),
    ],
)
def test_nvlink(make_driven, rig, line, count):
    assert make_driven(rig).smi("nvlink", "-s").stdout.splitlines().count(line) == count
