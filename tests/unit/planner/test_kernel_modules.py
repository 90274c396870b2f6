"""Flavor of the kernel modules, generation of the cards and branch of the driver: every combination."""

from dataclasses import replace
from typing import Any

import pytest

from boxwright import catalog, planner
from boxwright.catalog import kernel_modules
from boxwright.spec.box import box_from_variables

#: A device of each generation, of https://pci-ids.ucw.cz/read/PC/10de.
DEVICES = {
    "kepler": ["0ffd", "1189", "1287"],
    "maxwell": ["1381", "13c2", "17c8"],
    "pascal": ["15f8", "1b06", "1bb3", "1c82", "1d01"],
    "volta": ["1d81", "1db4", "1df6"],
    "turing": ["1e04", "1eb8", "1f82", "2184", "21c4"],
    "ampere": ["20b5", "2204", "2236", "2482", "2571"],
    "hopper": ["2330", "2331", "2335"],
    "grace-hopper": ["2342", "2348"],
    "ada": ["2684", "26b9", "27b8", "2882"],
    "blackwell": ["2901", "2b85", "2c02", "2d04", "3182"],
}
#: Flavors that drive the cards, by branch.
BOTH, OPEN, PROPRIETARY, NONE = ["open", "proprietary"], ["open"], ["proprietary"], []
DRIVES = {
    "kepler": {"570": NONE, "580": NONE, "590": NONE, "595": NONE, "615": NONE, "620": NONE},
    "maxwell": {"570": PROPRIETARY, "580": PROPRIETARY, "590": NONE, "595": NONE, "615": NONE, "620": NONE},
    "pascal": {"570": PROPRIETARY, "580": PROPRIETARY, "590": NONE, "595": NONE, "615": NONE, "620": NONE},
    "volta": {"570": PROPRIETARY, "580": PROPRIETARY, "590": NONE, "595": NONE, "615": NONE, "620": NONE},
    "turing": {"570": BOTH, "580": BOTH, "590": BOTH, "595": BOTH, "615": BOTH, "620": OPEN},
    "ampere": {"570": BOTH, "580": BOTH, "590": BOTH, "595": BOTH, "615": BOTH, "620": OPEN},
    "hopper": {"570": BOTH, "580": BOTH, "590": BOTH, "595": BOTH, "615": BOTH, "620": OPEN},
    "grace-hopper": {"570": OPEN, "580": OPEN, "590": OPEN, "595": OPEN, "615": OPEN, "620": OPEN},
    "ada": {"570": BOTH, "580": BOTH, "590": BOTH, "595": BOTH, "615": BOTH, "620": OPEN},
    "blackwell": {"570": OPEN, "580": OPEN, "590": OPEN, "595": OPEN, "615": OPEN, "620": OPEN},
}
ROWS = [
    (generation, branch, flavor, flavor in flavors)
    for generation, branches in DRIVES.items()
    for branch, flavors in branches.items()
    for flavor in kernel_modules.FLAVORS
]
LAST = 'nvidia_driver_branch: "580" with nvidia_driver_flavor: proprietary'
GATES = {"proprietary-modules-on-blackwell", "modules-do-not-drive-the-card"}


@pytest.fixture
def found(box_facts: Any) -> Any:
    """found(devices, branch, flavor, **variables): the plan's findings about the modules."""

    def plan(devices: list[str], branch: str, flavor: str, **variables: Any) -> list[Any]:
        facts = box_facts(["rtx3090"] * len(devices))
        cards = [
            replace(card, pci_id=f"10de:{device}") for card, device in zip(facts.cards, devices, strict=True)
        ]
        box = {"nvidia_driver_branch": branch, "nvidia_driver_flavor": flavor, **variables}
        made = planner.plan(
            box_from_variables("box1", box), replace(facts, cards=tuple(cards)), catalog.load()
        )
        return [gate for gate in made.gates if gate.id in GATES]

    return plan


def test_every_generation_is_in_the_tables() -> None:
    assert {one.id for one in kernel_modules.load()} == set(DEVICES) == set(DRIVES)


@pytest.mark.parametrize(("generation", "device"), [(g, d) for g, all_of in DEVICES.items() for d in all_of])
def test_the_generation_of_a_device(generation: str, device: str) -> None:
    card = kernel_modules.of_card(f"10de:{device}")
    assert card is not None
    assert card.id == generation


def test_the_cards_of_the_catalog_are_of_the_generation_that_it_says() -> None:
    for kind in catalog.load().cards:
        for pci_id in kind.pci:
            generation = kernel_modules.of_card(pci_id)
            assert generation is not None, kind.id
            assert generation.id == kind.generation, kind.id


def test_every_device_id_has_a_generation_and_a_broken_one_none() -> None:
    assert all(kernel_modules.of_card(f"10de:{device:04x}") for device in range(0x10000))
    assert [kernel_modules.of_card(text) for text in ("", "10de:", "10de:xyz", "10de:fffff")] == [None] * 4


@pytest.mark.parametrize(("generation", "branch", "flavor", "drives"), ROWS)
def test_every_combination(found: Any, generation: str, branch: str, flavor: str, drives: bool) -> None:
    gates = found(DEVICES[generation][:1], branch, flavor)
    assert len(gates) == (not drives), gates
    assert not found(DEVICES[generation][:1], branch, flavor, nvidia_driver_manage=False)


REFUSED = [row for row in ROWS if not row[3] and row[0] != "kepler"]


@pytest.mark.parametrize(("generation", "branch", "flavor", "drives"), REFUSED)
def test_the_way_out_is_one(found: Any, generation: str, branch: str, flavor: str, drives: bool) -> None:
    """What a refusal advises is let through; for Kepler the roles install nothing, and there is none."""
    gate = found(DEVICES[generation][:1], branch, flavor)[0]
    words = dict(part.split(": ") for part in gate.fix[0].replace('"', "").split(" with "))
    advised = (words.get("nvidia_driver_branch", branch), words.get("nvidia_driver_flavor", flavor))
    assert not found(DEVICES[generation][:1], *advised)


@pytest.mark.parametrize(
    ("devices", "branch", "flavor", "words"),
    [
        (["1b06"], "595", "proprietary", [LAST]),
        (["1b06"], "580", "open", ["nvidia_driver_flavor: proprietary"]),
        (["2b85"], "580", "proprietary", ["nvidia_driver_flavor: open"]),
        (["2204"], "620", "proprietary", ["nvidia_driver_flavor: open"]),
        # Together they are driven by what drives each.
        (["1b06", "2204"], "595", "open", [LAST]),
        (["0ffd"], "580", "proprietary", ["out of the host"]),
        (["1b06", "2b85"], "580", "open", ["out of the host: no kernel modules that the roles install"]),
        (["2b85", "1b06"], "580", "proprietary", ["out of the host; then nvidia_driver_flavor: open"]),
    ],
)  # fmt: skip
def test_ways_out(found: Any, devices: list[str], branch: str, flavor: str, words: list[str]) -> None:
    gates = found(devices, branch, flavor)
    assert len(gates) == 1
    assert [word for word in words if not any(word in way for way in gates[0].fix)] == [], gates[0].fix


def test_an_old_and_a_new_card_together(found: Any) -> None:
    assert not found(["1b06", "2204"], "580", "proprietary")
    assert not found(["2b85", "2204"], "620", "open")
