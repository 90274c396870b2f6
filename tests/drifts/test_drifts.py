"""What others do to a box: the quick way finds each drift that the full way mends, and mends it.

The catalogue's batches follow one another on one box. Of each batch: every drift is there, one look at the
box names it and visits its role; a full visit would change those roles; the quick way mends all, and leaves
nothing that a full visit would change.
"""

from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.lab

HOST = "lab5"
BATCHES = yaml.safe_load(Path(__file__).with_name("catalogue.yml").read_text())
#: Beside what the lab's boxes declare: limits of power, and sources that reach the ports.
DECLARED = {"gpu_tuning_power_limit_w": 450, "box_allow_from": ["172.16.0.0/12"]}


@pytest.fixture(scope="module")
def box(lab_hosts, simulated):
    lab_hosts(HOST)
    return simulated(HOST)


@pytest.fixture
def run(verb, over_lab, box):
    """A verb on the box, as a person with a declaration of their own runs it; its JSON."""

    inventories = over_lab(HOST, **DECLARED)

    def call(name, *words, status=0):
        ran = verb(name, "--host", HOST, *words, "--json", *inventories)
        assert ran.status == status, ran.output
        return ran.json

    return call


def names(batch, box):
    """The drifts of a batch that the box has: whose check fails."""
    script = "\n".join(
        f"({one['check']}) >/dev/null 2>&1 || echo {number}" for number, one in enumerate(batch)
    )
    return {batch[int(number)]["name"] for number in box.do("sh", "-c", script).split()}


def roles_of(report, *, changed):
    """Roles that a run visited, or changed."""
    return {
        entry["role"]
        for entry in report["hosts"][HOST]["roles"]
        if (entry["changed"] if changed else entry["visited"])
    }


def test_the_box_is_as_declared(run, box):
    run("provision")
    assert run("plan")["visits"] == {}
    assert [names(batch, box) for batch in BATCHES] == [set() for _ in BATCHES]


def test_there_are_forty_of_them():
    drifts = [one for batch in BATCHES for one in batch]
    assert len(drifts) >= 40
    assert len({one["name"] for one in drifts}) == len(drifts)


@pytest.mark.parametrize("number", range(len(BATCHES)))
def test_the_quick_way_finds_what_the_full_way_mends(number, run, box):
    batch = BATCHES[number]
    for one in batch:
        box.do("sh", "-c", one["do"])
    assert names(batch, box) == {one["name"] for one in batch}
    planned = run("plan")
    seen = [one for receipt in planned["facts"]["kept"]["receipts"].values() for one in receipt["drift"]]
    told = [
        *(change["text"] for change in planned["changes"]),
        *(f"{one['kind']} {one['subject']}" for one in seen),
    ]
    missed = [one["name"] for one in batch if not any(one["says"] in text for text in told)]
    assert not missed, told
    wanted = {one["role"] for one in batch}
    assert wanted <= set(planned["visits"]), planned["visits"]
    full = run("provision", "--check", "--full")
    assert wanted <= roles_of(full, changed=True), full["hosts"][HOST]["changes"]
    mended = run("provision")
    assert names(batch, box) == set(), mended["hosts"][HOST]["changes"]
    assert mended["hosts"][HOST]["unplanned"] == []
    again = run("provision", "--check", "--full")
    assert again["hosts"][HOST]["changed"] == 0, again["hosts"][HOST]["changes"]
    assert run("plan")["visits"] == {}
