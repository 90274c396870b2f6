"""What a store holds, who uses it, what is wrong with it; and freeing what nothing uses."""

import fcntl
import json
import os
from pathlib import Path

import pytest
from ansible.module_utils import store_manifest
from ansible.module_utils.partial_file import PartialFile
from ansible.module_utils.store_manifest import Manifest, entry_of, sha256_of

OLD, NEW = "1" * 40, "2" * 40


@pytest.fixture
def root(tmp_path):
    """Revisions of a model, one made of the older, a draft model, an interrupted fetch, a live release."""
    models = tmp_path / "models"

    def keep(name, child):
        directory = models / name / child
        directory.mkdir(parents=True)
        entries = []
        for path, verified in (("config.json", "size"), ("model.safetensors", "sha256")):
            (directory / path).write_bytes(path.encode() * 1000)
            entries.append(entry_of(str(directory), path, sha256_of(str(directory / path)), verified))
        store_manifest.save(str(directory), Manifest("hub", name.replace("--", "/", 1), child[:40], entries))
        return directory

    directories = {
        "old": keep("acme--tiny", OLD),
        "new": keep("acme--tiny", NEW),
        "made": keep("acme--tiny", OLD + "-autoawq-w4g64"),
        "draft": keep("acme--my--draft", OLD),
    }
    (models / "acme--tiny" / "notes").mkdir()
    partial = PartialFile(str(models / ".staging" / f"acme--big--{OLD}" / "tree" / "x"), 100, "")
    partial.write(0, memoryview(b"123"))
    partial.close()
    directories["unfinished"] = models / ".staging" / f"acme--big--{OLD}"
    directories["halfway"] = models / ".staging" / f"acme--big--{NEW}-autoawq-w4g64"
    (directories["halfway"] / "output").mkdir(parents=True)
    served = {"model_directory": str(directories["new"]), "drafter_directory": str(directories["draft"])}
    for number, current in (("r1", False), ("r2", True)):
        release = tmp_path / "releases" / "qwen" / number
        release.mkdir(parents=True)
        (release / "release.json").write_text(json.dumps(served))
        if current:
            (tmp_path / "releases" / "qwen" / "current").symlink_to(number)
    return tmp_path, directories


@pytest.fixture
def call(root, run_module):
    def run(**arguments):
        result = run_module("model_listing", root_dir=str(root[0]), **arguments)
        names = {str(path): name for name, path in root[1].items()}
        return result, {names[one["directory"]]: one for one in result["revisions"]}

    return run


def test_what_is_there_and_who_uses_it(call):
    result, found = call(declared=[{"repo": "acme/tiny", "revision": OLD}])
    assert set(found) == {"old", "new", "made", "draft", "unfinished", "halfway"}
    assert found["new"]["used"] == found["draft"]["used"] == ["qwen/r2 (live)", "qwen/r1"]
    assert {name for name, one in found.items() if one["declared"]} == {"old", "made"}
    assert (found["new"]["files"], found["new"]["by_sha256"], found["new"]["state"]) == (2, 1, "whole")
    assert (found["draft"]["repo"], found["made"]["made"]) == ("acme/my--draft", "autoawq-w4g64")
    assert found["unfinished"]["state"] == found["halfway"]["state"] == "unfinished"
    assert (found["unfinished"]["made"], found["halfway"]["made"]) == ("", "autoawq-w4g64")
    assert found["halfway"]["revision"] == NEW
    assert not result["changed"]
    assert result["room"] > 0


def test_a_declared_model_without_a_commit_keeps_all_its_revisions(call):
    _, found = call(declared=[{"repo": "acme/tiny", "revision": None}])
    assert {name for name, one in found.items() if one["declared"]} == {"old", "new", "made"}


@pytest.mark.parametrize(
    ("damage", "how"),
    [
        (lambda path: path.unlink(), "missing"),
        (lambda path: os.truncate(path, 0), "empty"),
        (lambda path: os.truncate(path, 77), "truncated: 77 of 17000 bytes"),
    ],
)
def test_what_a_look_shows(call, root, damage, how):
    damage(root[1]["new"] / "model.safetensors")
    _, found = call()
    assert found["new"]["flaws"] == [{"path": "model.safetensors", "how": how}]
    others = {"old", "made", "draft"}
    assert {found[name]["state"] for name in others} == {"whole"}


def test_a_flipped_bit_is_found_by_reading_and_left_for_the_next_run_to_mend(call, root):
    path = root[1]["new"] / "model.safetensors"
    state = path.stat()
    with path.open("r+b") as stream:
        stream.seek(500)
        stream.write(b"\xff")
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert call()[1]["new"]["flaws"] == []
    flaws = [{"path": "model.safetensors", "how": "other bytes than were verified"}]
    assert call(deep=True)[1]["new"]["flaws"] == flaws
    # A run of model_store looks at sizes, times and inodes only: it must see it now, too.
    manifest = store_manifest.load(str(root[1]["new"]))
    assert [
        flaw._asdict() for flaw in store_manifest.inspect(str(root[1]["new"]), manifest.files).flaws
    ] == flaws
    assert call()[1]["new"]["flaws"] == flaws


def test_only_what_nothing_uses_goes(call, root):
    everything = [str(path) for path in root[1].values()]
    result, found = call(declared=[{"repo": "acme/tiny", "revision": OLD}], prune=everything)
    assert set(result["freed"]) == {str(root[1]["unfinished"]), str(root[1]["halfway"])}
    assert set(found) == {"old", "new", "made", "draft"}
    result, found = call(prune=everything)
    assert set(result["freed"]) == {str(root[1]["old"]), str(root[1]["made"])}
    assert set(found) == {"new", "draft"}
    assert list((root[0] / "models" / ".staging").iterdir()) == []


@pytest.mark.parametrize(
    ("place", "lock"),
    [("unfinished", f"acme--big--{OLD}"), ("halfway", "quantize")],
    ids=["fetch", "quantizing"],
)
def test_what_a_run_is_at_stays(call, root, place, lock):
    path = root[0] / "models" / ".locks" / f"{lock}.lock"
    path.parent.mkdir()
    with path.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        result, _ = call(prune=[str(root[1][place])])
    assert (result["freed"], result["kept"]) == ([], [str(root[1][place])])


def test_an_empty_box(run_module, tmp_path):
    result = run_module("model_listing", root_dir=str(tmp_path / "nothing"))
    assert result["revisions"] == []
    assert not Path(tmp_path / "nothing").exists()
