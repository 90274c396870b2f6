"""Image layers: the same bytes wherever a tree lies."""

from __future__ import annotations

import hashlib
import io
import shutil
import tarfile

import pytest

from boxwright.lab.store import layers
from boxwright.lab.store.layers import Layer

TIME = 1767225600
LONG = "a" * 90 + "/" + "b" * 120 + ".py"


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "site"
    (root / "pkg/__pycache__").mkdir(parents=True)
    (root / "pkg/mod.py").write_text("x = 1\n")
    (root / "pkg/__pycache__/mod.cpython-311.pyc").write_bytes(b"code")
    (root / "tool").write_text("#!/bin/sh\n")
    (root / "tool").chmod(0o750)
    (root / "link").symlink_to("tool")
    (root / LONG).parent.mkdir()
    (root / LONG).write_text("long")
    return root


def archive(tree, wanted=lambda path: True, files=()) -> bytes:
    return b"".join(layers.from_tree(tree, "/opt/site", TIME, wanted, files))


def members(content: bytes) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        return {member.name: member for member in tar}


def test_an_archive_does_not_depend_on_place_owner_or_time(tree, tmp_path):
    first = archive(tree)
    other = shutil.copytree(tree, tmp_path / "elsewhere", symlinks=True)
    for path in other.rglob("*.py"):
        path.touch()
        path.chmod(0o600)
    assert archive(other) == first


def test_an_archive_holds_files_links_and_the_folders_above(tree):
    content = archive(tree)
    found = members(content)
    assert list(found)[:2] == ["opt", "opt/site"]
    assert found["opt/site/pkg/mod.py"].mode == 0o644
    assert found["opt/site/tool"].mode == 0o755
    assert found["opt/site/link"].linkname == "tool"
    assert found[f"opt/site/{LONG}"].size == 4
    assert {(each.uid, each.gid, each.mtime) for each in found.values()} == {(0, 0, TIME)}
    assert len(content) % tarfile.BLOCKSIZE == 0
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        assert tar.extractfile(f"opt/site/{LONG}").read() == b"long"


def test_a_tree_can_be_split_and_files_added(tree):
    source = members(archive(tree, lambda path: "__pycache__" not in path.parts))
    code = members(
        archive(
            tree,
            lambda path: "__pycache__" in path.parts,
            [("/usr/local/bin/vllm", b"#!/usr/bin/python3\n", 0o755)],
        )
    )
    assert "opt/site/pkg/mod.py" in source
    assert "opt/site/pkg/__pycache__/mod.cpython-311.pyc" not in source
    assert {name for name, each in code.items() if each.isfile()} == {
        "opt/site/pkg/__pycache__/mod.cpython-311.pyc",
        "usr/local/bin/vllm",
    }
    assert code["usr/local/bin/vllm"].mode == 0o755


def test_a_layer_knows_its_digest_and_size(tree):
    content = archive(tree)
    layer = Layer.of(lambda: iter([content[:100], content[100:]]))
    assert (layer.digest, layer.size) == (f"sha256:{hashlib.sha256(content).hexdigest()}", len(content))
    assert b"".join(layer.read()) == content
