"""Going back by hand, and changing a key: both start an engine that may not do."""

import sys
from pathlib import Path

import pytest
from ansible.module_utils.docker_api import Image

sys.path.insert(0, str(Path(__file__).parent))
from engine_box import Box
from engine_doubles import KEY


@pytest.fixture
def box(tmp_path, monkeypatch):
    found = Box(tmp_path, monkeypatch)
    for identity in ("aaa1", "aaa2", "bbb3"):
        found.images[f"vllm@{identity}"] = Image(f"id-{identity}", f"sha256:{identity}", 1)
    yield found
    found.server.close()


@pytest.fixture
def served(box, run_module):
    """Three releases that served one after the other: bbb3 does now."""
    for identity in ("aaa1", "aaa2", "bbb3"):
        plan = box.release(identity, image=f"vllm:{identity}")
        run_module("engine_gate", deployments=[plan], releases={"qwen": identity}, root_dir=str(box.root))
    box.calls.clear()


@pytest.fixture
def rollback(box, run_module):
    return lambda **words: run_module("engine_rollback", root_dir=str(box.root), start_timeout_s=3, **words)


@pytest.mark.parametrize(
    ("words", "release"),
    [({}, "aaa2"), ({"to": "aaa1"}, "aaa1"), ({"to": "b"}, "bbb3"), ({"deployment": "qwen"}, "aaa2")],
)
def test_an_earlier_release_serves_again(box, served, rollback, words, release):
    result = rollback(**words)
    assert (result["changed"], result["image"]) == (release != "bbb3", f"vllm:{release}")
    assert (box.running, box.link("current")) == ({"qwen": release}, release)
    assert box.boot == {"qwen": f"unit of {release}\n"}
    assert [one["id"] for one in result["releases"] if one["current"]] == [release]
    assert {one["id"] for one in result["releases"]} == {"aaa1", "aaa2", "bbb3"}


def test_back_and_forth(box, served, rollback):
    rollback()
    rollback()
    assert (box.link("current"), box.link("previous")) == ("bbb3", "aaa2")


def test_one_that_does_not_serve_any_more_leaves_the_present_one(box, served, rollback):
    box.crashes.add("aaa2")
    result = rollback()
    assert "qwen: release aaa2 does not serve" in result["msg"]
    assert "The release before it, bbb3, serves again." in result["msg"]
    assert (box.running, box.link("current")) == ({"qwen": "bbb3"}, "bbb3")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"to": "aaa"}, "2 releases of qwen begin with aaa"),
        ({"to": "zzz"}, "0 releases of qwen begin with zzz"),
        ({"deployment": "other"}, "no release of a deployment 'other' is on the host; it has: qwen"),
    ],
)
def test_what_cannot_be_meant_is_told_with_what_there_is(box, served, rollback, words, said):
    result = rollback(**words)
    assert said in result["msg"]
    if "to" in words:
        assert "vllm:bbb3  (current)" in result["msg"]
    assert box.calls == []


def test_nothing_to_go_back_to(box, rollback, run_module):
    assert "The host has: none" in rollback()["msg"]
    plan = box.release("aaa1")
    run_module("engine_gate", deployments=[plan], releases={"qwen": "aaa1"}, root_dir=str(box.root))
    assert "no release of qwen served before the present one" in rollback()["msg"]


def test_an_image_that_is_gone_is_told_before_anything_stops(box, served, rollback):
    del box.images["vllm@aaa2"]
    assert "docker pull vllm@aaa2" in rollback()["msg"]
    assert box.calls == []


def test_check_mode_stops_nothing(box, served, rollback):
    assert rollback(check=True)["changed"] is True
    assert (box.calls, box.link("current")) == ([], "bbb3")


@pytest.fixture
def rotate(box, run_module):
    return lambda **words: run_module(
        "engine_key",
        deployment="qwen",
        key_file=str(box.root / "key"),
        root_dir=str(box.root),
        start_timeout_s=3,
        **words,
    )


def key(box):
    return (box.root / "key").read_text().strip()


def test_a_new_key_is_asked_for(box, served, rotate):
    box.takes_new_keys = True
    result = rotate()
    assert (result["changed"], box.deeds) == (True, [("stop", "qwen"), ("start", "bbb3")])
    assert len(key(box)) == 64
    assert key(box) != KEY
    assert (box.root / "key").stat().st_mode & 0o777 == 0o640
    assert key(box) not in str(result)


def test_an_engine_that_does_not_take_it_goes_on_with_the_old_one(box, served, rotate):
    box.takes_new_keys = False
    result = rotate()
    assert "does not serve with a new key" in result["msg"]
    assert key(box) == KEY
    assert box.running == {"qwen": "bbb3"}


def test_no_key_before_there_is_an_engine(box, rotate):
    assert "provision the box first" in rotate()["msg"]


def test_check_mode_changes_no_key(box, served, rotate):
    assert rotate(check=True)["changed"] is True
    assert key(box) == KEY
