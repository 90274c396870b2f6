"""A deployment that is misspelt is said before any box is asked, by every verb that takes one."""

from pathlib import Path

import pytest

from boxwright.cli import benching, journals, keys, rollback
from boxwright.cli.deployments import chosen, hosts_with
from boxwright.errors import UserError
from boxwright.spec.inventory import load

ONE = "box_deployments: [{name: qwen, model: qwen3-8b-awq, image: 'vllm/vllm-openai:v0.29.0'}]\n"
TWO = (
    ONE.rstrip("]\n")
    + ", {name: small, model: qwen3-8b-awq, image: 'vllm/vllm-openai:v0.29.0', port: 8001}]\n"
)


@pytest.fixture
def inventory(tmp_path):
    (tmp_path / "host_vars").mkdir()
    (tmp_path / "hosts.yml").write_text("all: {hosts: {box1: {}, box2: {}, box3: {}}}\n")
    (tmp_path / "host_vars" / "box1.yml").write_text(ONE)
    (tmp_path / "host_vars" / "box2.yml").write_text(TWO)
    return [str(tmp_path)]


@pytest.mark.parametrize(
    "verb",
    [
        lambda hosts, where: journals.logs(hosts, where, deployment="qwem"),
        lambda hosts, where: benching.bench(hosts, where, deployment="qwem"),
        lambda hosts, where: benching.runs(hosts, where, deployment="qwem"),
        lambda hosts, where: benching.comparing(hosts, where, deployment="qwem", first="last"),
        lambda hosts, where: rollback.rollback(hosts, where, deployment="qwem"),
        lambda hosts, where: keys.show(hosts, where, deployment="qwem"),
    ],
)
def test_every_verb_says_so(inventory, verb, monkeypatch):
    for module in (journals, benching, rollback, keys):
        monkeypatch.setattr(module, "play", lambda *words, **more: pytest.fail("a box was asked"))
    with pytest.raises(UserError) as error:
        verb(["box1"], inventory)
    assert 'no deployment is named "qwem"' in str(error.value)
    assert "qwen" in str(error.value)
    assert error.value.status == 2


def test_all_boxes_are_those_that_declare_it(inventory):
    known = load([Path(one) for one in inventory])
    names = ["box1", "box2", "box3"]
    assert hosts_with(known, names, None) == names
    assert hosts_with(known, names, "small", every=True) == ["box2"]
    with pytest.raises(UserError) as error:
        hosts_with(known, names, "smal", every=True)
    assert 'did you mean "small"' in str(error.value)
    with pytest.raises(UserError, match="box1: no deployment"):
        hosts_with(known, ["box1", "box2"], "small")


def test_the_one_that_is_meant(inventory):
    known = load([Path(one) for one in inventory])
    assert chosen(known, "box1", None) == "qwen"
    assert chosen(known, "box2", "small") == "small"
    with pytest.raises(UserError, match="it serves several models"):
        chosen(known, "box2", None)
    with pytest.raises(UserError, match="nothing is deployed there"):
        chosen(known, "box3", None)
