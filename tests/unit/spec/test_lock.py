import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from boxwright.errors import UserError
from boxwright.spec import lock

SHA, OTHER = "a" * 40, "b" * 40
DIGEST = f"sha256:{'c' * 64}"


def test_nothing_is_locked_without_a_file(tmp_path: Path) -> None:
    entry = lock.read(lock.path_of(tmp_path)).entry("box1", "q")
    assert entry == lock.Entry()
    assert entry.revision_of("a/b") is None


def test_the_lock_lies_beside_the_hosts(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.yml"
    hosts.touch()
    assert lock.path_of(hosts) == lock.path_of(tmp_path) == tmp_path / ".boxwright.lock.json"


def test_what_is_recorded_is_read_again(tmp_path: Path) -> None:
    path = lock.path_of(tmp_path)
    lock.update(path, "box1", "q", model="a/b@main", revision=SHA)
    lock.update(path, "box1", "q", image="x:1", image_digest=DIGEST)
    lock.update(path, "box2", "r", image="x:1", image_digest=DIGEST)
    entry = lock.read(path).entry("box1", "q")
    assert entry == lock.Entry("a/b@main", SHA, "x:1", DIGEST)
    assert (entry.revision_of("a/b@main"), entry.revision_of("a/b")) == (SHA, None)
    assert (entry.digest_of("x:1"), entry.digest_of("x:2")) == (DIGEST, None)
    assert json.loads(path.read_text())["format"] == lock.FORMAT


def test_a_draft_model_is_locked_beside_its_model(tmp_path: Path) -> None:
    path = lock.path_of(tmp_path)
    lock.update(path, "box1", "q", model="a/b", revision=SHA)
    lock.update(path, "box1", "q", drafter="c/d", drafter_revision=OTHER)
    entry = lock.read(path).entry("box1", "q")
    assert (entry.revision_of("a/b"), entry.drafter_revision_of("c/d")) == (SHA, OTHER)
    assert entry.drafter_revision_of("c/e") is None
    after = lock.update(path, "box1", "q", drafter="c/e").entry("box1", "q")
    assert (after.revision, after.drafter_revision) == (SHA, None)


def test_another_image_loses_the_digest_of_the_former(tmp_path: Path) -> None:
    path = lock.path_of(tmp_path)
    lock.update(path, "box1", "q", model="a/b", revision=SHA, image="x:1", image_digest=DIGEST)
    after = lock.update(path, "box1", "q", image="x:2").entry("box1", "q")
    assert after == lock.Entry("a/b", SHA, "x:2", None)
    assert lock.update(path, "box1", "q", model="a/b", revision=OTHER).entry("box1", "q").revision == OTHER


def test_a_file_that_would_stay_the_same_is_not_touched(tmp_path: Path) -> None:
    path = lock.path_of(tmp_path)
    lock.update(path, "box1", "q", image="x:1", image_digest=DIGEST)
    before = path.stat()
    lock.update(path, "box1", "q", image="x:1", image_digest=DIGEST)
    assert path.stat().st_ino == before.st_ino
    assert stat.S_IMODE(before.st_mode) == 0o644
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_two_at_once_lose_nothing(tmp_path: Path) -> None:
    path = lock.path_of(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        list(
            pool.map(lambda n: lock.update(path, f"box{n}", "q", image="x:1", image_digest=DIGEST), range(24))
        )
    assert len(lock.read(path).hosts) == 24


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{\n  oops", ":2"),
        ("", ":1"),
        ("[]", ""),
        ('{"format": 2, "hosts": {}}', ""),
        ('{"format": 1, "hosts": []}', ""),
        ('{"format": 1, "hosts": {"a": {"b": {"revision": 5}}}}', ""),
        ('{"format": 1, "hosts": {"a": {"b": {"other": "x"}}}}', ""),
        ("<<<<<<< HEAD\n{}", ":1"),
    ],
)
def test_a_file_that_is_none_is_told_with_its_place(tmp_path: Path, text: str, line: str) -> None:
    path = lock.path_of(tmp_path)
    path.write_text(text)
    with pytest.raises(UserError) as raised:
        lock.read(path)
    assert raised.value.where == f"{path}{line}"
    assert raised.value.ways_out
    with pytest.raises(UserError):
        lock.update(path, "a", "b", image="x:1")
    assert path.read_text() == text


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = lock.path_of(tmp_path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="cannot be used"):
        lock.read(path)


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot write"):
        lock.update(tmp_path / "no" / lock.FILE_NAME, "a", "b", image="x:1")
