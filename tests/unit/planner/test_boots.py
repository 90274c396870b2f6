"""The pool against what vLLM itself printed, boot by boot (boots.yml)."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from boxwright import catalog, planner
from boxwright.catalog.architecture import Attention
from boxwright.catalog.model_config import from_config
from boxwright.planner.kv_pool import KV_BYTES, PoolSpec, layout
from boxwright.spec.box import Box, Cards, Deployment, ModelRef, Speculative

KNOWN = yaml.safe_load((Path(__file__).parent / "boots.yml").read_text())
CATALOG = catalog.load()
MODELS = CATALOG.models
GIB = 1 << 30


def architecture(name):
    said = KNOWN["models"][name]
    return MODELS[said["catalog"]].architecture if "catalog" in said else from_config(said)


def pool_of(boot):
    model = architecture(boot["model"])
    drafter = KNOWN["drafters"].get(boot.get("drafter"))
    return layout(
        PoolSpec(
            model,
            KV_BYTES[boot["kv"]],
            boot.get("tp", 1),
            boot.get("pp", 1),
            draft_tokens=boot.get("mtp", boot.get("drafts", 0)),
            mtp_layers=model.mtp_layers if boot.get("mtp") else 0,
            drafter=Attention(**drafter) if drafter else None,
            prefix_caching=boot.get("prefix_caching", True),
            batched_tokens=boot.get("batched", 2048),
            release=boot["release"],
        )
    )


def named(boot):
    return f"{boot['model']} {boot['release']}, {boot['source']}"


def span(gib):
    """The bytes that are printed like this."""
    return int((float(gib) - 0.005) * GIB), int((float(gib) + 0.005) * GIB)


def possible_blocks(boot, pool):
    """Numbers of blocks that the log leaves open; every one where it does not tell the pool's size."""
    if "stages" in boot:
        bounds = [span(gib) for gib in boot["stages"]]
        ends = [min(pool.count(pair[side], stage) for stage, pair in enumerate(bounds)) for side in (0, 1)]
    elif "gib" in boot:
        ends = [pool.count(size) for size in span(boot["gib"])]
    else:
        rate = boot["tokens"] / boot["context"]
        ends = [int(rate * pool.blocks(boot["context"])) - 2, int(rate * pool.blocks(boot["context"])) + 3]
    return range(ends[0], ends[1] + 1)


@pytest.mark.parametrize("boot", KNOWN["boots"], ids=named)
def test_a_boot_prints_what_the_plan_says(boot):
    pool, context = pool_of(boot), boot["context"]
    fitting = [
        blocks
        for blocks in possible_blocks(boot, pool)
        if pool.tokens(blocks * pool.block_bytes, context) == boot["tokens"]
        and f"{pool.concurrency(blocks * pool.block_bytes, context):.2f}" == boot["concurrency"]
    ]
    assert fitting
    assert boot.get("blocks", fitting[0]) in fitting
    assert boot.get("block", pool.block_tokens) == pool.block_tokens


@pytest.mark.parametrize("boot", KNOWN["needed"], ids=named)
def test_one_sequence_needs_what_the_engine_says(boot):
    pool = pool_of(boot)
    assert f"{pool.blocks(boot['context']) * pool.block_bytes / GIB:.2f}" == boot["gib"]


@pytest.mark.parametrize("boot", KNOWN["same_pool"], ids=named)
def test_one_pool_explains_each_context(boot):
    pool = pool_of(boot)
    most = int(max(float(rate) * pool.blocks(context) for context, rate in boot["concurrency"].items())) + 99
    assert any(
        all(f"{blocks / pool.blocks(context):.2f}" == rate for context, rate in boot["concurrency"].items())
        for blocks in range(most)
    )


@pytest.mark.parametrize(
    "boot", KNOWN["free"], ids=lambda boot: f"{boot['count']} {boot['card']}, {boot['model']}"
)
def test_a_pool_that_the_engine_chose_lies_in_the_range(boot):
    deployment = Deployment(
        "q",
        ModelRef(name=boot["model"]),
        "vllm/vllm-openai:v0.29.0",
        context=boot["context"],
        kv_cache=boot["kv"],
        max_batched_tokens=boot["batched"],
        concurrency=boot["concurrency"],
        gpu_memory_utilization=boot["share"],
        speculative=Speculative(*boot.get("drafts", ("none", None))),
    )
    box = Box("box1", gpus=(Cards(boot["card"], boot["count"]),), deployments=(deployment,))
    ledger = planner.plan(box, planner.offline_facts(box, CATALOG), CATALOG).cases[0].ledger
    assert ledger
    assert ledger.pool.low <= boot["gib"] * GIB <= ledger.pool.high
    assert ledger.pool.high - ledger.pool.low < 4 * GIB


def test_the_boots_are_of_many_kinds():
    kinds = {
        "hybrid": any(architecture(boot["model"]).is_hybrid for boot in KNOWN["boots"]),
        "window": any(architecture(boot["model"]).sliding for boot in KNOWN["boots"]),
        "latent": any(architecture(boot["model"]).attention.latent for boot in KNOWN["boots"]),
        "stages": any("stages" in boot for boot in KNOWN["boots"]),
    }
    assert all(kinds.values()), kinds
    assert len(KNOWN["boots"]) >= 20
