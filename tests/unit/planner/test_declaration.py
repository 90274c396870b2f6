"""What is written of a box, for each kind of box: it validates, and its plan refuses nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from boxwright import catalog, planner
from boxwright.catalog import choices as catalog_choices
from boxwright.facts import HostFacts
from boxwright.facts.model import Listener
from boxwright.planner.declaration import cards_of, driver_branch, host_file, unknown_cards
from boxwright.planner.recommend import recommend
from boxwright.spec.box import box_from_variables
from boxwright.spec.host_file import HostFile
from boxwright.spec.inventory import load
from boxwright.spec.validate import check

CATALOG = catalog.load()
LOADED = "580.105.08"


def written(facts: HostFacts, inherited: dict[str, object] | None = None, family: str = "") -> HostFile:
    """The file for a box; inherited: what its groups give it."""
    more = inherited or {}
    values = {"nvidia_driver_branch": driver_branch(facts, CATALOG), **more, **cards_of(facts, CATALOG)}
    found = recommend(box_from_variables("box1", values), facts, CATALOG, family=family)
    return host_file("box1", facts, CATALOG, found, more)


def gates(file: HostFile, facts: HostFacts, place: Path) -> list[str]:
    """What validate and plan have against the file in an inventory."""
    (place / "host_vars").mkdir()
    (place / "hosts.yml").write_text("all:\n  hosts:\n    box1: {ansible_host: 192.0.2.17}\n")
    (place / "host_vars" / "box1.yml").write_text(file.text())
    inventory = load([place])
    wrong = [str(problem) for problem in check(inventory)]
    box = box_from_variables("box1", inventory.variables("box1"))
    return wrong + [gate.id for gate in planner.plan(box, facts, CATALOG).gates]


@pytest.mark.parametrize(
    ("cards", "driver", "expected", "deployment"),
    [
        (["rtx5090"], None, {"box_gpus": {"model": "rtx5090", "count": 1}, "nvidia_driver_branch": "595"},
         {"name": "qwen", "model": "qwen3.8-27b-int4", "kv_cache": "fp8"}),
        (["rtx5090"], LOADED, {"nvidia_driver_branch": "580"}, {"model": "qwen3.8-27b-int4"}),
        (["rtx5090"] * 2, LOADED, {"box_gpus": {"model": "rtx5090", "count": 2}},
         {"model": "qwen3.8-27b-fp8", "tensor_parallel": 2, "context": 262144}),
        (["rtx3090"] * 2, "570.195.03", {"nvidia_driver_branch": "595"},
         {"model": "qwen3.8-27b-int4", "tensor_parallel": 2}),
        (["rtx4090"] * 2, None, {"box_gpus": {"model": "rtx4090", "count": 2}}, {"tensor_parallel": 2}),
        (["rtx5090", "rtx3090"], LOADED,
         {"box_gpus": [{"model": "rtx5090", "count": 1}, {"model": "rtx3090", "count": 1}]},
         {"model": "qwen3.8-27b-int4", "gpus": [0]}),
        (["a100-80gb"] * 8, "595.71.05",
         {"box_gpus": {"model": "a100-80gb", "count": 8}, "nvidia_driver_branch": "595"},
         {"model": "qwen3.8-27b"}),
    ],
)  # fmt: skip
def test_what_is_written(
    cards: list[str],
    driver: str | None,
    expected: dict[str, object],
    deployment: dict[str, object],
    box_facts: Any,
    tmp_path: Path,
) -> None:
    facts = box_facts(cards, driver)
    file = written(facts)
    values = yaml.safe_load(file.text())
    assert values == file.values()
    assert expected.items() <= values.items()
    [served] = values["box_deployments"]
    assert deployment.items() <= served.items()
    assert served["context"] >= 32768
    assert gates(file, facts, tmp_path) == []


def test_a_card_that_only_its_driver_tells(box_facts: Any, tmp_path: Path) -> None:
    """Twelve GB on a card that the catalog does not know: planned by the driver's figures, not declared."""
    facts = box_facts(["rtx3060"], LOADED)
    assert cards_of(facts, CATALOG) == {}
    assert unknown_cards(facts, CATALOG) == ()
    file = written(facts)
    assert "box_gpus" not in file.values()
    assert "The catalog does not know NVIDIA GeForce RTX 3060" in file.text()
    [served] = file.values()["box_deployments"]  # type: ignore[misc]
    assert served["model"] in ("qwen3-14b-awq", "qwen3-8b-awq")
    assert gates(file, facts, tmp_path) == []


@pytest.mark.parametrize("card", ["rtx3060", "gtx1080ti"])
def test_a_card_that_nobody_tells(card: str, box_facts: Any) -> None:
    (stranger,) = unknown_cards(box_facts([card], None), CATALOG)
    assert CARDS_PCI[card] in stranger.title


CARDS_PCI = {"rtx3060": "10de:2504", "gtx1080ti": "10de:1b06"}


def test_a_card_too_old_for_every_image(box_facts: Any) -> None:
    facts = box_facts(["gtx1080ti"], LOADED)
    found = recommend(box_from_variables("box1", {}), facts, CATALOG)
    assert found.choices == ()
    assert found.nearest is not None
    assert "card-older-than-image" in {gate.id for gate in found.nearest.gates}


@pytest.mark.parametrize(
    ("system", "driver", "branch"),
    [
        ("debian 13", None, "595"),
        ("debian 12", None, "580"),
        ("ubuntu 24.04", None, "580"),
        ("ubuntu 24.04", "570.195.03", "580"),
        ("ubuntu 24.04", "550.163.01", "580"),
        ("ubuntu 24.04", "590.48.01", "590"),
        ("debian 13", "580.105.08", "580"),
    ],
)
def test_the_driver_branch(system: str, driver: str | None, branch: str, box_facts: Any) -> None:
    """What works stays; else what the distribution's repository has and the image needs."""
    name, version = system.split()
    release = f'ID={name}\nVERSION_ID="{version}"\nPRETTY_NAME="x"\n'
    facts = box_facts(["rtx4090"], driver, system=release)
    assert driver_branch(facts, CATALOG) == branch
    assert written(facts).values()["nvidia_driver_branch"] == branch


def test_limits_are_offered_with_the_card_s_range_and_what_was_seen(box_facts: Any) -> None:
    text = written(box_facts(["rtx4090"] * 2, LOADED)).text()
    assert "# gpu_tuning_max_clock_mhz: 2100" in text
    assert "up to 3,105 MHz. 2100 MHz keeps a 1,600 W supply from tripping" in text
    assert "# gpu_tuning_power_limit_w: 260" in text
    assert "150 to 600 W, by default 450 W" in text


def test_a_limit_that_the_card_does_not_take_is_not_offered(box_facts: Any) -> None:
    facts = box_facts(["rtx5090"], LOADED)
    plain = facts.to_json()
    plain["cards"][0]["power"]["min"] = 450.0
    text = written(HostFacts.from_json(plain)).text()
    assert "# gpu_tuning_power_limit_w: 575" in text
    assert "# gpu_tuning_power_limit_w: 400" not in text


def test_offered_settings_are_no_mistakes_when_they_are_taken(box_facts: Any, tmp_path: Path) -> None:
    """Every line that stands there commented out is right as it stands."""
    facts = box_facts(["rtx4090"] * 2, None)
    file = written(facts)
    lines = file.text().splitlines()
    offered = [line for line in lines if line.lstrip().startswith("# ") and ": " in line]
    names = ("gpu_tuning_", "nvidia_driver_reboot", "bind")
    taken = [line for line in offered if line.lstrip("# ").startswith(names)]
    assert len(taken) == 4
    text = "\n".join(line.replace("# ", "", 1) if line in taken else line for line in lines) + "\n"
    values = yaml.safe_load(text)
    assert values["gpu_tuning_max_clock_mhz"] == 2100
    assert values["box_deployments"][0]["bind"] == "0.0.0.0"
    (tmp_path / "hosts.yml").write_text("all:\n  hosts:\n    box1:\n")
    (tmp_path / "host_vars").mkdir()
    (tmp_path / "host_vars" / "box1.yml").write_text(text)
    assert [str(problem) for problem in check(load([tmp_path]))] == []
    box = box_from_variables("box1", values)
    assert [gate.id for gate in planner.plan(box, facts, CATALOG).gates] == []


def test_what_the_groups_say_is_not_said_again(box_facts: Any) -> None:
    facts = box_facts(["rtx5090"], LOADED)
    assert "nvidia_driver_branch" not in written(facts, {"nvidia_driver_branch": "590"}).values()
    assert "nvidia_driver_branch" not in written(facts, {"nvidia_driver_manage": False}).values()


def test_a_port_that_is_taken_is_not_declared(box_facts: Any, tmp_path: Path) -> None:
    facts = box_facts(["rtx5090"], LOADED)
    plain = facts.to_json()
    plain["listening"] = [{"port": 8000, "address": "0.0.0.0", "process": "other"}]
    busy = HostFacts.from_json(plain)
    assert busy.listening == (Listener(8000, "0.0.0.0", "other"),)
    file = written(busy)
    assert file.values()["box_deployments"][0]["port"] == 8001  # type: ignore[index]
    assert gates(file, busy, tmp_path) == []


def test_what_a_host_says_of_itself_stays_in_its_comment(box_facts: Any) -> None:
    facts = box_facts(["rtx5090"], LOADED)
    plain = facts.to_json()
    plain["os"]["name"] = "x\nbox_root_dir: /evil\u2028nvidia_driver_manage: false\r\x1b[31m" + "long" * 200
    file = written(HostFacts.from_json(plain))
    assert yaml.safe_load(file.text()) == file.values()
    assert set(file.values()) == {"box_gpus", "nvidia_driver_branch", "box_deployments"}
    assert file.text().isascii() or all(one.isprintable() or one == "\n" for one in file.text())


def test_limits_name_cards_of_the_catalog() -> None:
    kinds = {kind.id: kind for kind in CATALOG.cards}
    for card, limits in catalog_choices.limits().items():
        kind = kinds[card]
        assert limits.power_w or limits.clock_mhz
        if limits.power_w:
            assert (kind.power_min_w or 0) <= limits.power_w.value <= (kind.power_max_w or 0)
        if limits.clock_mhz:
            assert limits.clock_mhz.value <= (kind.clock_graphics_mhz or 0)


def test_choices_name_what_the_catalog_has() -> None:
    choices = catalog_choices.load()
    assert choices.trials <= set(CATALOG.models)
    assert all(CATALOG.images.identify(image).release for image in choices.images)
    assert list(choices.size_classes) == sorted(choices.size_classes)
