from __future__ import annotations

import json

import pytest

from boxwright.facts.model import Card, Clocks, Driver, HostFacts, OperatingSystem
from boxwright.facts.room import Memory

FACTS = HostFacts(
    host="box1",
    os=OperatingSystem("debian", "13", "trixie", "x86_64", "6.12"),
    cards=(Card(0, "0000:01:00.0", "10de:2b85", clocks=Clocks(max_graphics=3090), topology=("X",)),),
    driver=Driver(state="loaded", loaded_version="580.105.08", packages={"a": "1"}, held=("a",)),
    memory=Memory(1, 2),
)


def test_facts_go_to_json_and_back():
    assert HostFacts.from_json(json.loads(json.dumps(FACTS.to_json()))) == FACTS


def test_facts_of_another_release_can_be_read():
    plain = FACTS.to_json()
    plain["of a newer release"] = 1
    del plain["cpus"]
    assert HostFacts.from_json(plain) == FACTS


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda plain: plain["cards"][0].update(index="0"), r"cards\[0\]\.index"),
        (lambda plain: plain.update(cards={}), r"HostFacts\.cards"),
        (lambda plain: plain.update(os=None), r"HostFacts\.os"),
        (lambda plain: plain["os"].pop("id"), r"os\.id is missing"),
        (lambda plain: plain.update(cpus=True), r"HostFacts\.cpus"),
        (lambda plain: plain["driver"].update(packages=[]), r"driver\.packages"),
    ],
)
def test_a_wrong_value_is_named_by_its_path(change, path):
    plain = FACTS.to_json()
    change(plain)
    with pytest.raises(ValueError, match=path):
        HostFacts.from_json(plain)
