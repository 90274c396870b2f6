"""What is found when a finished directory is compared with its manifest."""

import hashlib
import json
import os

import pytest
from ansible.module_utils import store_manifest
from ansible.module_utils.store_manifest import Flaw, Manifest

CONTENT = {"config.json": b"{}", "model.safetensors": b"0123456789" * 100, "sub/template.jinja": b"{{ x }}"}


@pytest.fixture
def finished(tmp_path):
    """A directory and its manifest."""
    directory = tmp_path / "store" / "revision"
    for path, content in CONTENT.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_bytes(content)
    entries = [
        store_manifest.entry_of(str(directory), path, hashlib.sha256(content).hexdigest(), "size")
        for path, content in CONTENT.items()
    ]
    store_manifest.save(str(directory), Manifest("hub", "acme/tiny", "f" * 40, entries))
    return directory


def look(directory, deep=False):
    return store_manifest.inspect(str(directory), store_manifest.load(str(directory)).files, deep)


def test_as_recorded(finished):
    inspection = look(finished)
    assert [entry.path for entry in inspection.good] == list(CONTENT)
    assert (inspection.touched, inspection.flaws) == ([], [])


def truncate(path):
    path.write_bytes(path.read_bytes()[:10])


def lengthen(path):
    path.write_bytes(path.read_bytes() + b"+")


def flip(path):
    content = bytearray(path.read_bytes())
    content[500] ^= 1
    path.write_bytes(content)


def link(path):
    path.unlink()
    path.symlink_to("/etc/hostname")


@pytest.mark.parametrize(
    ("damage", "how"),
    [
        (lambda path: path.unlink(), "missing"),
        (lambda path: path.write_bytes(b""), "empty"),
        (truncate, "truncated: 10 of 1000 bytes"),
        (lengthen, "too long: 1001 of 1000 bytes"),
        (flip, "other bytes than were verified"),
        (link, "not a plain file"),
    ],
)
def test_damage_is_named(finished, damage, how):
    damage(finished / "model.safetensors")
    inspection = look(finished)
    assert inspection.flaws == [Flaw("model.safetensors", how)]
    assert len(inspection.good) == 2


def test_a_hidden_flip_shows_only_to_a_deep_look(finished):
    path = finished / "model.safetensors"
    state = path.stat()
    descriptor = os.open(path, os.O_RDWR)
    os.pwrite(descriptor, b"X", 500)
    os.close(descriptor)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert look(finished).flaws == []
    assert look(finished, deep=True).flaws == [Flaw("model.safetensors", "other bytes than were verified")]


def test_a_copy_is_read_once_and_taken(finished, tmp_path):
    copy = tmp_path / "copy"
    for path in CONTENT:
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        (copy / path).write_bytes((finished / path).read_bytes())
    inspection = store_manifest.inspect(str(copy), store_manifest.load(str(finished)).files)
    assert sorted(entry.path for entry in inspection.touched) == sorted(CONTENT)
    assert inspection.flaws == []
    again = store_manifest.inspect(str(copy), inspection.touched)
    assert (len(again.good), again.touched) == (len(CONTENT), [])


def test_hashing_tells_its_bytes(finished):
    counted = []
    store_manifest.inspect(
        str(finished), store_manifest.load(str(finished)).files, deep=True, tell=counted.append
    )
    assert sum(counted) == sum(len(content) for content in CONTENT.values())


@pytest.mark.parametrize(
    "text", [None, "", "{", "[]", "{}", '{"format": 2, "files": []}', '{"format": 1, "files": [{}]}']
)
def test_no_manifest_that_can_be_read(finished, text):
    path = finished / store_manifest.NAME
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    assert store_manifest.load(str(finished)) is None


def test_manifest_is_read_back_as_written(finished):
    manifest = store_manifest.load(str(finished))
    assert (manifest.kind, manifest.repo, manifest.revision) == ("hub", "acme/tiny", "f" * 40)
    assert {entry.path: entry.size for entry in manifest.files} == {
        path: len(content) for path, content in CONTENT.items()
    }
    assert json.loads((finished / store_manifest.NAME).read_text())["format"] == 1


def test_strangers(finished):
    (finished / "extra.safetensors").write_bytes(b"x")
    assert store_manifest.strangers(str(finished), store_manifest.load(str(finished)).files) == [
        "extra.safetensors"
    ]


@pytest.mark.parametrize(
    ("verified", "said"),
    [
        (["sha256"], "1 file, 1 verified by sha256"),
        (["sha256", "size", "size"], "3 files, 1 verified by sha256, 2 by size"),
        (["sha256"] * 13 + ["size"], "14 files, 13 verified by sha256, 1 by size"),
        (["size", "size"], "2 files, all verified by size only"),
    ],
)
def test_summary(verified, said):
    entries = [store_manifest.Entry(str(n), 1, "", each, 0, 0) for n, each in enumerate(verified)]
    assert store_manifest.summary(entries) == said
