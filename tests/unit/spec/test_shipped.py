"""The inventories that come with Boxwright: the lab and the reference rigs."""

import ipaddress
import re
import shlex
from pathlib import Path

import pytest
import yaml

from boxwright import catalog, planner
from boxwright.spec.box import Deployment, Speculative, box_from_variables
from boxwright.spec.inventory import Inventory, load
from boxwright.spec.validate import check

ROOT = Path(__file__).resolve().parents[3]
LAB, RIGS = ROOT / "inventory" / "lab", ROOT / "inventory" / "rigs"
RIG_NAMES = ("rtx5090", "rtx5090x2", "rtx3090x2", "rtx4090x2")


@pytest.fixture(scope="module")
def lab() -> Inventory:
    return load([LAB])


@pytest.fixture(scope="module")
def rigs() -> Inventory:
    return load([RIGS])


def served(inventory: Inventory, host: str) -> Deployment:
    [deployment] = box_from_variables(host, inventory.variables(host)).deployments
    return deployment


def test_they_are_right_alone_and_together(lab: Inventory, rigs: Inventory) -> None:
    for inventory in (lab, rigs, load([LAB, RIGS])):
        assert [str(problem) for problem in check(inventory)] == []


def test_the_lab_has_twenty_boxes_in_its_group(lab: Inventory) -> None:
    assert lab.hosts == tuple(f"lab{number}" for number in range(1, 21))
    assert all("lab" in lab.groups(host) for host in lab.hosts)


def test_a_lab_box_serves_the_small_model(lab: Inventory) -> None:
    deployment = served(lab, "lab1")
    assert (deployment.model.name, deployment.port, deployment.gpus) == ("smollm2-135m-instruct", 8000, (0,))
    assert deployment.gate_expect
    assert re.search(deployment.gate_expect, "The capital city of France is Paris.")


def test_the_way_into_the_lab_is_the_checkouts_own(lab: Inventory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BOXWRIGHT_ROOT", raising=False)
    own = shlex.quote(str(ROOT / ".lab" / "ssh_config"))
    assert lab.variables("lab1")["ansible_ssh_common_args"] == f"-F {own}"
    monkeypatch.setenv("BOXWRIGHT_ROOT", "/some where/else")
    assert load([LAB]).variables("lab1")["ansible_ssh_common_args"] == "-F '/some where/else/.lab/ssh_config'"


def test_nothing_of_the_lab_comes_from_elsewhere() -> None:
    text = (LAB / "group_vars" / "lab.yml").read_text()
    addresses = re.findall(r"https?://([^/\s:\"]+)", text)
    assert addresses
    assert set(addresses) == {"depot.boxwright.lab"}


def test_the_rigs_are_the_four_of_the_reports(rigs: Inventory) -> None:
    assert rigs.hosts == RIG_NAMES
    cards = {host: rigs.variables(host)["box_gpus"] for host in rigs.hosts}
    assert cards == {
        "rtx5090": {"model": "rtx5090", "count": 1},
        "rtx5090x2": {"model": "rtx5090", "count": 2},
        "rtx3090x2": {"model": "rtx3090", "count": 2},
        "rtx4090x2": {"model": "rtx4090", "count": 2},
    }


def test_the_rigs_have_addresses_that_are_nobodys(rigs: Inventory) -> None:
    documentation = ipaddress.ip_network("192.0.2.0/24")
    for host in rigs.hosts:
        assert ipaddress.ip_address(str(rigs.variables(host)["ansible_host"])) in documentation


@pytest.mark.parametrize("host", RIG_NAMES)
def test_a_rig_uses_what_exists(rigs: Inventory, host: str) -> None:
    """The settings that the review of the reports found wrong are in none of them."""
    deployment = served(rigs, host)
    assert re.fullmatch(r"vllm/vllm-openai:v0\.(28|29|3\d)\.\d+", deployment.image)
    assert deployment.speculative.method == "mtp"
    assert deployment.speculative.tokens in (2, 3)
    invented = {"enable-mtp", "mtp-num", "speculative-model", "decode-kernel", "quantization", "block-size",
                "trust-remote-code", "attention-backend"}  # fmt: skip
    assert not invented & set(deployment.extra_args)
    assert deployment.kv_cache == "fp8"


@pytest.mark.parametrize("host", RIG_NAMES)
def test_the_plan_of_a_rig_refuses_nothing(rigs: Inventory, host: str) -> None:
    box, loaded = box_from_variables(host, rigs.variables(host)), catalog.load()
    found = planner.plan(box, planner.offline_facts(box, loaded), loaded).to_json()
    assert found["gates"] == []
    assert found["deployments"]


def test_what_makes_each_rig(rigs: Inventory) -> None:
    two_3090, two_4090 = served(rigs, "rtx3090x2"), served(rigs, "rtx4090x2")
    assert (two_3090.context, two_3090.tensor_parallel, two_3090.concurrency) == (262144, 2, 8)
    assert two_3090.speculative == Speculative("mtp", 3)
    assert (two_4090.context, two_4090.concurrency, two_4090.speculative) == (
        262144,
        16,
        Speculative("mtp", 2),
    )
    box = box_from_variables("rtx4090x2", rigs.variables("rtx4090x2"))
    assert (box.tuning.min_clock_mhz, box.tuning.max_clock_mhz) == (0, 2100)
    assert served(rigs, "rtx5090x2").tensor_parallel == 2
    for host in ("rtx5090", "rtx5090x2"):
        utilization = served(rigs, host).gpu_memory_utilization
        assert utilization is not None
        assert utilization <= 0.9


@pytest.mark.parametrize("host", RIG_NAMES)
def test_each_correction_names_its_row(host: str) -> None:
    text = (RIGS / "host_vars" / f"{host}.yml").read_text()
    rows = re.findall(r"\b(000|003|004)-\d+\b", text)
    report = {"rtx5090": "000", "rtx5090x2": "000", "rtx3090x2": "003", "rtx4090x2": "004"}[host]
    assert len(rows) >= 3
    assert set(rows) == {report}


def test_the_files_are_ready_to_copy(tmp_path: Path) -> None:
    for host in RIG_NAMES:
        variables = yaml.safe_load((RIGS / "host_vars" / f"{host}.yml").read_text())
        place = tmp_path / host
        (place / "host_vars").mkdir(parents=True)
        (place / "hosts.yml").write_text("all:\n  hosts:\n    box1:\n      ansible_host: 10.0.0.5\n")
        (place / "host_vars" / "box1.yml").write_text((RIGS / "host_vars" / f"{host}.yml").read_text())
        inventory = load([place])
        assert not check(inventory)
        assert set(variables) <= set(inventory.raw("box1"))
