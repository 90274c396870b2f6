"""A release that the catalog has reads from its source to exactly what the catalog says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from boxwright.catalog import history
from boxwright.cli import releases
from boxwright.releases.archive import Archive

DATA = Path(__file__).parent / "data"
PACKED = {"vllm": "0.33.0", "sglang": "0.5.23"}


@pytest.fixture(scope="module")
def read():
    """Engine -> what its packed source says."""
    found = {}
    for engine, release in PACKED.items():
        name = f"{engine}-{release}.tar.gz"
        with (DATA / name).open("rb") as file:
            archive = Archive(name, file)
        found[engine] = (releases.READERS[engine](archive.read), archive.build())
    return found


def table(engine):
    return json.loads(releases.data_file(engine).read_text())


@pytest.mark.parametrize("engine", PACKED)
def test_the_source_gives_the_table(read, engine):
    options, build = read[engine]
    known = history.releases(table(engine))[PACKED[engine]]
    assert options["options"] == known.options
    for part, names in known.names.items():
        assert set(options[part]) == names, part
    assert build == known.build


@pytest.mark.parametrize("engine", PACKED)
def test_a_table_that_lacks_the_release_gets_it_back_to_the_byte(read, engine):
    whole = table(engine)
    known = history.releases(whole)
    newest = PACKED[engine]
    without = history.table(whole["source"], {name: one for name, one in known.items() if name != newest})
    assert newest not in without["releases"]
    options, build = read[engine]
    names = {part: frozenset(value) for part, value in options.items() if part != "options"}
    again = history.added(without, newest, history.Release(options["options"], names, build))
    lines = "".join(f"{line}\n" for line in releases.compact.lines(again))
    assert lines == releases.data_file(engine).read_text()


@pytest.mark.parametrize("engine", PACKED)
def test_taking_a_table_apart_and_together_changes_nothing(engine):
    whole = table(engine)
    assert history.table(whole["source"], history.releases(whole)) == whole


def test_a_release_between_two_known_ones_is_put_between_them():
    whole = table("vllm")
    known = history.releases(whole)
    made = history.added(whole, "0.29.1", known["0.29.0"])
    assert made["releases"].index("0.29.1") == made["releases"].index("0.29.0") + 1
    assert history.releases(made)["0.30.0"] == known["0.30.0"]
    assert made["options"] == whole["options"]


def test_the_differences_name_what_a_person_must_know():
    known = history.releases(table("vllm"))
    changes = history.differences(known["0.27.1"], known["0.28.0"])
    assert next(one.kind for one in changes if one.name == "calculate-kv-scales") == "removed"
    found = history.differences(known["0.31.0"], known["0.32.0"])
    assert any(one.name == "allowed-origins" and (one.before, one.after) == (["*"], []) for one in found)


def test_a_new_name_for_the_same_option_is_told_as_renamed():
    old = history.Release({"cpu-count": {"type": "int", "default": 1}}, {}, {})
    for name, form in (
        ("cpu-counts", {"type": "int", "default": 1}),
        ("processors", {"type": "int", "default": 1, "aliases": ["--cpu-count"]}),
    ):
        changes = history.differences(old, history.Release({name: form}, {}, {}))
        assert [(one.kind, one.before, one.after) for one in changes] == [("renamed", "cpu-count", name)]
    other = history.differences(old, history.Release({"memory": {"type": "int", "default": 1}}, {}, {}))
    assert [one.kind for one in other] == ["removed", "added"]
