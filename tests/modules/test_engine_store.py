"""Releases on the disk: named by content, linked, kept and pruned."""

import json
import os
import time
from pathlib import Path

import pytest
from ansible.module_utils.engine_store import Store, deployments, release_id
from hypothesis import given
from hypothesis import strategies as st

JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text()),
    lambda below: st.one_of(st.lists(below, max_size=3), st.dictionaries(st.text(), below, max_size=3)),
    max_leaves=6,
)


@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_an_id_is_of_the_content_alone(state):
    backwards = dict(reversed(list(state.items())))
    assert release_id(backwards) == release_id(state) == release_id(json.loads(json.dumps(state)))
    assert len(release_id(state)) == 12
    assert release_id({**state, "env": {"A": "1"}}) != release_id({**state, "env": {"A": "2"}})


@pytest.fixture
def store(tmp_path):
    return Store(str(tmp_path), "qwen")


def file(store, *names):
    return Path(store.directory, *names)


def put(store, release, **plan):
    return store.write(release, {"command": [release]}, plan, f"unit of {release}\n")


def test_written_once(store):
    assert put(store, "aaa", image="v1") is True
    assert put(store, "aaa", image="v1") is False
    found = store.read("aaa")
    assert (found.state, found.plan, found.unit) == ({"command": ["aaa"]}, {"image": "v1"}, "unit of aaa\n")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"plan": {}}', '{"id": "aaa", "plan": 3}', '{"id": "bbb", "plan": {}}', "\x00"]
)
def test_a_record_that_is_not_this_releases_own_is_none(store, text):
    put(store, "aaa")
    file(store, "aaa", "release.json").write_text(text)
    assert store.read("aaa") is None
    assert put(store, "aaa") is True, "the next run makes it again"
    assert store.read("aaa").unit == "unit of aaa\n"


def test_another_plan_for_the_same_state_is_no_change_but_is_kept(store):
    put(store, "aaa", image="v1")
    made = json.loads(file(store, "aaa", "release.json").read_text())["made"]
    assert put(store, "aaa", image="latest") is False
    document = json.loads(file(store, "aaa", "release.json").read_text())
    assert (document["image"], document["made"]) == ("latest", made)


def test_check_mode_writes_nothing(store):
    assert store.write("aaa", {}, {}, "unit", check=True) is True
    assert store.releases() == []


def test_only_root_reads_a_release(store):
    put(store, "aaa")
    assert file(store, "aaa", "release.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("damage", ["release.json", "unit.service"])
def test_a_release_that_is_not_whole_is_none(store, damage):
    put(store, "aaa")
    file(store, "aaa", damage).unlink()
    assert store.read("aaa") is None
    assert put(store, "aaa") is True
    assert store.read("aaa") is not None


def test_half_written_json_is_none(store):
    put(store, "aaa")
    file(store, "aaa", "release.json").write_text('{"id": ')
    assert store.read("aaa") is None


def test_links_follow_promotion(store):
    for release in ("aaa", "bbb"):
        put(store, release)
    assert (store.link("current"), store.link("previous")) == (None, None)
    assert store.promote("aaa") is True
    assert store.promote("aaa") is False
    assert store.promote("bbb") is True
    assert (store.link("current"), store.link("previous")) == ("bbb", "aaa")
    assert str(file(store, "current").readlink()) == "bbb"


def test_a_link_to_nothing_is_none(store):
    put(store, "aaa")
    store.promote("aaa")
    file(store, "aaa").rename(file(store, "gone"))
    assert store.link("current") is None


def test_an_interrupted_promotion_is_finished_by_the_next(store):
    for release in ("aaa", "bbb"):
        put(store, release)
    file(store, ".current.new").symlink_to("aaa")
    assert store.promote("bbb") is True
    assert store.link("current") == "bbb"


def test_the_oldest_go_and_what_is_linked_stays(store):
    for number, release in enumerate(["aaa", "bbb", "ccc", "ddd", "eee"]):
        put(store, release)
        moment = time.time() - 100 + number
        os.utime(store.path(release), (moment, moment))
    store.promote("aaa")
    store.promote("eee")
    assert store.excess(3) == ["bbb", "ccc"]
    store.remove(store.excess(3))
    assert store.releases() == ["aaa", "ddd", "eee"]
    assert store.excess(1) == ["ddd"]
    store.remove(["ddd"])
    assert store.excess(0) == []
    assert store.releases() == ["aaa", "eee"]


def test_what_a_host_has(tmp_path):
    assert deployments(str(tmp_path)) == []
    for name in ("b", "a"):
        put(Store(str(tmp_path), name), "aaa")
    assert deployments(str(tmp_path)) == ["a", "b"]
    Store(str(tmp_path), "a").forget()
    assert deployments(str(tmp_path)) == ["b"]
