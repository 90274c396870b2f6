"""The pool against vLLM's own functions, run on geometries of many families (vllm_pools.yml)."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
import yaml

from boxwright.catalog.architecture import Architecture, Attention, Latent, LinearAttention
from boxwright.planner.kv_pool import PoolSpec, layout

SAID = yaml.safe_load((Path(__file__).parent / "vllm_pools.yml").read_text())


def attention(said, layers=None):
    if said is None:
        return None
    latent = Latent(said["latent"], 0, 0, 0) if "latent" in said else None
    return Attention(
        layers or said["layers"], 64, said["kv_heads"], said["head_dim"], said.get("window"), latent=latent
    )


def architecture(name):
    said = SAID["models"][name]
    full, sliding, linear = (said.get(kind) for kind in ("full", "sliding", "linear"))
    if linear:
        layers = said["layers"] - full["layers"]
        linear = LinearAttention(
            layers, linear["kh"], linear["vh"], linear["kd"], linear["vd"], linear["conv"], 4
        )
    return Architecture(
        name,
        "llama4" if sliding and "chunk" in sliding else "any",
        said["layers"],
        4096,
        4096,
        32000,
        attention(full or sliding),
        1 << 20,
        sliding=attention(sliding) if full else None,
        linear=linear,
    )


@pytest.mark.parametrize("said", SAID["pools"], ids=lambda said: f"{said['model']}-tp{said['tp']}")
def test_a_pool_is_what_vllm_makes_of_it(said):
    pool = layout(
        PoolSpec(
            architecture(said["model"]),
            Fraction(said["kv"]),
            said["tp"],
            said.get("pp", 1),
            draft_tokens=said["drafts"],
            mtp_layers=said["mtp"],
            drafter=attention(SAID["drafters"].get(said.get("drafter"))),
            prefix_caching=said["caching"],
            batched_tokens=said["batched"],
            release="0.32.0",
        )
    )
    size, context = said["pool"], said["context"]
    assert pool.fits(size, context) == said["fits"]
    if said["fits"]:
        assert pool.count(size) == said["blocks"]
        assert pool.tokens(size, context) == said["tokens"]
        assert pool.concurrency(size, context) == pytest.approx(said["concurrency"], abs=1e-6)
