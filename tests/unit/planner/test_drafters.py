"""Draft models: what is looked up for them, and how their configs are read."""

from __future__ import annotations

import pytest

from boxwright import catalog, planner
from boxwright.facts.model import File, HostFacts, ModelFiles, OperatingSystem
from boxwright.planner.lookups import lookups
from boxwright.spec.box import Box, Deployment, ModelRef, Speculative

CATALOG = catalog.load()
COMMIT = "a" * 40
IMAGE = "vllm/vllm-openai:v0.32.0"
CONFIG = {
    "architectures": ["DFlash2DraftModel"],
    "model_type": "qwen3",
    "num_hidden_layers": 5,
    "hidden_size": 5120,
    "intermediate_size": 17408,
    "vocab_size": 248320,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 262144,
    "sliding_window": 2048,
}


def deployment(name="q", model=None, method="dflash2", draft=None):
    return Deployment(
        name, model or ModelRef(name="qwen3.8-27b-int4"), IMAGE, speculative=Speculative(method, 7, draft)
    )


def test_model_and_draft_model_are_looked_up_once_each():
    boxes = [deployment(), deployment("r", draft=ModelRef(repo="org/draft", revision="v2"))]
    assert lookups(boxes, CATALOG, {"r": COMMIT}, {"q": COMMIT}) == [
        {"repo": "RedHatAI/Qwen3.8-27B-INT4"},
        {"repo": "incoai/Qwen3.8-27B-DFlash2", "revision": COMMIT},
        {"repo": "RedHatAI/Qwen3.8-27B-INT4", "revision": COMMIT},
        {"repo": "org/draft", "revision": "v2"},
    ]


@pytest.mark.parametrize("method", ["none", "mtp", "ngram"])
def test_other_methods_have_no_draft_model(method):
    asked = lookups([deployment(method=method, draft=ModelRef(path="/srv/d"))], CATALOG, {})
    assert asked == [{"repo": "RedHatAI/Qwen3.8-27B-INT4"}]


def test_a_directory_is_looked_at_and_an_unknown_name_asked_nowhere():
    paths = deployment(model=ModelRef(path="/srv/m"), draft=ModelRef(path="/srv/d"))
    assert lookups([paths], CATALOG, {}) == [{"path": "/srv/m"}, {"path": "/srv/d"}]
    assert lookups([deployment(model=ModelRef(name="none"))], CATALOG, {}) == []


def planned(config, revisions=None):
    answer = ModelFiles(
        "incoai/Qwen3.8-27B-DFlash2@" + COMMIT if revisions else "incoai/Qwen3.8-27B-DFlash2",
        "hub",
        "incoai/Qwen3.8-27B-DFlash2",
        COMMIT,
        files=(File("model.safetensors", 3_850_000_000),),
        config=config,
    )
    facts = HostFacts("box1", OperatingSystem("", "", "", "", ""), models=(answer,))
    made = planner.plan(Box("box1", deployments=(deployment(),)), facts, CATALOG, {}, revisions or {})
    return made.cases[0]


@pytest.mark.parametrize(
    ("change", "layers", "window"),
    [
        ({"layer_types": ["sliding_attention"] * 5}, 5, 2048),
        ({"layer_types": ["full_attention"] * 5}, 5, None),
        ({}, 5, None),
        ({"dflash_config": {"use_swa": True}}, 5, 2048),
        ({"dflash_config": {"use_swa": True, "swa_window_size": 1024}}, 5, 1024),
    ],
)
def test_its_windows_are_read_as_the_engine_reads_them(change, layers, window):
    drafter = planned({**CONFIG, **change}).drafter
    assert (drafter.attention.layers, drafter.attention.window) == (layers, window)


def test_a_mixed_one_has_both_kinds():
    drafter = planned({**CONFIG, "layer_types": ["full_attention", *["sliding_attention"] * 4]}).drafter
    assert (drafter.attention.layers, drafter.sliding.layers) == (1, 4)


@pytest.mark.parametrize(
    ("change", "tokens"),
    [({"dflash_config": {"block_size": 16}}, 15), ({"block_size": 8}, 7), ({}, 7), ({"block_size": "x"}, 7)],
)
def test_the_tokens_that_it_was_trained_for(change, tokens):
    assert planned({**CONFIG, **change}).drafter.tokens == tokens


def test_the_locked_commit_is_the_one_that_is_served():
    case = planned(CONFIG, {"q": COMMIT})
    assert case.draft_model.revision == COMMIT
    assert case.draft_model.directory == f"/var/lib/boxwright/models/incoai--Qwen3.8-27B-DFlash2/{COMMIT}"
    assert case.drafter.bytes == 3_850_000_000


@pytest.mark.parametrize(
    "config", [{}, {"num_hidden_layers": "5"}, {**CONFIG, "layer_types": 7, "dflash_config": 7}]
)
def test_odd_configs_are_read_or_told(config):
    case = planned(config)
    assert case.draft_model.problem == ("config" if len(config) < 5 else None)
