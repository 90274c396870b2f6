"""A deployment that is misspelt is said before any box is asked, by every verb that takes one."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from boxwright.cli import benching, chatting, journals, keys, rollback, tune_boxes, tune_wish, tuning
from boxwright.cli.deployments import chosen, hosts_with, refuse_wordless, writing
from boxwright.errors import EXIT_BAD_INPUT, UserError
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


@pytest.fixture
def wordless(tmp_path):
    (tmp_path / "host_vars").mkdir()
    (tmp_path / "hosts.yml").write_text("all: {hosts: {box1: {}, box2: {}, box3: {}}}\n")
    gpus = "box_gpus: {model: rtx4090, count: 1}\n"
    for host, model in (
        ("box1", "model: bge-reranker-v2-m3"),
        ("box2", "model: {repo: org/name}, serves: embeddings"),
        ("box3", "model: {repo: org/name}"),
    ):
        declared = f"box_deployments: [{{name: e, {model}, image: 'vllm/vllm-openai:v0.29.0'}}]\n"
        (tmp_path / "host_vars" / f"{host}.yml").write_text(gpus + declared)
    return [str(tmp_path)]


@pytest.mark.parametrize(
    "verb",
    [
        lambda hosts, where: benching.bench(hosts, where),
        lambda hosts, where: benching.bench(hosts, where, deployment="e"),
        lambda hosts, where: tuning.tune(hosts, where, wanted=tune_wish.asked()),
        lambda hosts, where: chatting.chat(hosts, where, prompt="hello"),
    ],
)
@pytest.mark.parametrize(
    ("host", "served"), [("box1", "serves reranking"), ("box2", "serves embeddings"), ("box3", None)]
)
def test_verbs_for_text_say_what_else_is_served(wordless, verb, host, served, monkeypatch):
    class Asked(Exception):
        pass

    def asked(*args, **options):
        raise Asked

    for module in (benching, tune_boxes, chatting):
        monkeypatch.setattr(module.lab, "ensure_simulated", asked)
    if served is None:
        with pytest.raises(Asked):  # what only the files say is seen on the box
            verb([host], wordless)
        return
    with pytest.raises(UserError) as error:
        verb([host], wordless)
    assert served in error.value.what
    assert error.value.status == EXIT_BAD_INPUT
    assert any("/v1/" in way for way in error.value.ways_out)
    assert f"./invoke verify --host {host} lets it answer" in error.value.ways_out


def test_of_several_that_are_not_told_apart_nothing_is_said(wordless):
    loaded = load([Path(wordless[0])])
    variables = loaded.variables("box2")
    two = SimpleNamespace(variables=lambda host: {"box_deployments": 2 * variables["box_deployments"]})
    refuse_wordless(two, "box2", None, "it does not matter")


def test_of_hosts_that_were_not_named_those_without_text_are_left_out(wordless):
    loaded = load([Path(wordless[0])])
    assert writing(loaded, ["box1", "box2", "box3"], None, "it", every=True) == ["box3"]
    for hosts, every in ((["box1", "box2"], True), (["box3", "box1"], False)):
        with pytest.raises(UserError, match="serves"):
            writing(loaded, hosts, None, "it", every=every)
