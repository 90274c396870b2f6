"""The command for each release: only options that it has, each value in an argument of its own."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import yaml

from boxwright import catalog, planner
from boxwright.engines import vllm
from boxwright.planner import settings
from boxwright.spec.box import Box, Cards, Deployment, ModelRef, Speculative

CATALOG = catalog.load()
TABLE = CATALOG.options["vllm"]
QWEN = Deployment(
    "qwen",
    ModelRef(name="qwen3.8-27b-int4"),
    "vllm/vllm-openai:v0.32.0",
    context=32768,
    kv_cache="fp8",
    speculative=Speculative("mtp", 2),
)


def command(deployment=QWEN, release="0.32.0", count=1, **changes):
    deployment = dataclasses.replace(deployment, image=f"vllm/vllm-openai:v{release}", **changes)
    box = Box("box1", gpus=(Cards("rtx5090", count),), deployments=(deployment,))
    return planner.plan(box, planner.offline_facts(box, CATALOG), CATALOG).cases[0].command


@pytest.mark.parametrize("release", TABLE.releases)
def test_every_release_gets_options_that_it_has(release):
    made = command(release=release, count=2, gpu_memory_utilization=0.9)
    for word in made.argv[3:]:
        if word.startswith("--"):
            assert TABLE.option(word[2:], release), word
    assert made.argv[3:5] == ("--served-model-name", "qwen")
    assert "--max-num-seqs" in made.argv
    assert json.loads(made.argv[made.argv.index("--speculative-config") + 1]) == {
        "method": "mtp",
        "num_speculative_tokens": 2,
    }


def test_the_context_is_left_to_releases_that_can_choose():
    large = {"context": "auto", "kv_cache": "auto"}
    assert command(release="0.14.1", **large).argv[5:7] == ("--max-model-len", "auto")
    fallback = command(release="0.13.0", **large).argv[5:7]
    assert fallback[0] == "--max-model-len"
    assert int(fallback[1]) % 1024 == 0


def test_a_pinned_pool_needs_a_release_that_has_it():
    assert not command(kv_cache_memory_bytes=1 << 32).problems
    (problem,) = command(
        release="0.9.2", kv_cache_memory_bytes=1 << 32, kv_cache="auto", speculative=Speculative()
    ).problems
    assert (problem.rule, problem.path) == ("option-not-yet", "kv_cache_memory_bytes")


@pytest.mark.parametrize(("declared", "word"), [("bf16", "bfloat16"), ("fp16", "float16"), ("fp8", "fp8")])
def test_kv_formats_by_the_engines_names(declared, word):
    argv = command(kv_cache=declared).argv
    assert argv[argv.index("--kv-cache-dtype") + 1] == word


def test_nothing_is_said_of_the_automatic_format():
    assert "--kv-cache-dtype" not in command(kv_cache="auto").argv


def test_prefix_caching_is_said_only_where_it_is_declared():
    assert not [word for word in command().argv if "prefix-caching" in word]
    assert "--enable-prefix-caching" in command(prefix_caching=True).argv
    assert "--no-enable-prefix-caching" in command(prefix_caching=False, release="0.33.0").argv


def test_a_step_holds_a_whole_block_of_cached_state():
    argv = command(kv_cache="nvfp4").argv
    assert int(argv[argv.index("--max-num-batched-tokens") + 1]) >= 2848


def test_the_same_declaration_gives_the_same_command_before_and_after_the_driver():
    from boxwright.facts.model import Card, Driver, HostFacts, OperatingSystem

    box = Box("box1", gpus=(), deployments=(QWEN,))
    system = OperatingSystem("debian", "13", "trixie", "x86_64", "6.12")
    before = HostFacts("box1", system, cards=(Card(0, "0000:01:00.0", "10de:2b85"),))
    after = HostFacts(
        "box1",
        system,
        driver=Driver(state="loaded", loaded_version="580.105.08"),
        cards=(
            Card(
                0, "0000:01:00.0", "10de:2b85", "GPU-1", "NVIDIA GeForce RTX 5090", 32607, 487, 9000, "12.0"
            ),
        ),
    )
    one, other = (planner.plan(box, facts, CATALOG).cases[0].command for facts in (before, after))
    assert one == other
    assert one.argv


def test_the_backend_that_is_named():
    deployment = dataclasses.replace(QWEN, extra_args={"--attention_backend": "flashinfer"})
    assert vllm.backend(deployment, {}) == "FLASHINFER"
    assert vllm.backend(QWEN, {"VLLM_ATTENTION_BACKEND": "flash_attn"}) == "FLASH_ATTN"
    assert vllm.backend(QWEN, {}) is None


def test_requests_that_run_may_finish_where_the_release_can_wait_for_them():
    argv = command(release="0.18.1", kv_cache="auto").argv
    assert argv[argv.index("--shutdown-timeout") + 1] == "60"
    assert "--shutdown-timeout" not in command(release="0.17.1", kv_cache="auto").argv
    own = command(extra_args={"shutdown_timeout": 5}).argv
    assert own.count("--shutdown-timeout") == 1
    assert own[own.index("--shutdown-timeout") + 1] == "5"


@pytest.mark.parametrize(("declared", "seconds"), [({}, 60), ({"engine_drain_seconds": 300}, 300)])
def test_how_long_is_the_roles_own_variable(declared, seconds):
    defaults = yaml.safe_load(Path("roles/engine/defaults/main.yml").read_text())
    assert defaults["engine_drain_seconds"] == settings.DRAIN_SECONDS
    assert settings.drain_seconds(Box("box1", settings=declared)) == seconds
