"""A plan is made while somebody waits: the pure part in milliseconds."""

from __future__ import annotations

import time

from boxwright import catalog, planner
from boxwright.spec.box import Box, Cards, Deployment, ModelRef, Speculative


def test_a_plan_takes_milliseconds():
    known = catalog.load()
    one = Deployment(
        "q",
        ModelRef(name="qwen3.8-27b-int4"),
        "vllm/vllm-openai:v0.29.0",
        context=262_144,
        kv_cache="fp8",
        speculative=Speculative("mtp", 3),
    )
    box = Box("box1", gpus=(Cards("rtx3090", 2),), deployments=(one,))
    facts = planner.offline_facts(box, known)
    planner.plan(box, facts, known)
    times = []
    for _ in range(5):
        begin = time.process_time()
        planner.plan(box, facts, known).to_json()
        times.append(time.process_time() - begin)
    assert min(times) < 0.05
