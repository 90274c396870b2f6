"""SGLang's command for each release: only options that it has, and the same declaration as for vLLM."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import yaml

from boxwright import catalog, planner
from boxwright.engines import sglang
from boxwright.planner import rules
from boxwright.spec.box import Box, Cards, Deployment, ModelRef, Speculative, box_from_variables

CATALOG = catalog.load()
TABLE = CATALOG.options["sglang"]
RIGS = Path(__file__).parents[3] / "inventory" / "rigs" / "host_vars"
QWEN = Deployment(
    "qwen",
    ModelRef(name="qwen3.8-27b-int4"),
    "lmsysorg/sglang:v0.5.23",
    engine="sglang",
    context=32768,
    kv_cache="fp8",
    speculative=Speculative("mtp", 2),
)


def plan(release="0.5.23", count=1, card="rtx5090", **changes):
    changes.setdefault("image", f"lmsysorg/sglang:v{release}")
    deployment = dataclasses.replace(QWEN, **changes)
    box = Box("box1", gpus=(Cards(card, count),), deployments=(deployment,))
    return planner.plan(box, planner.offline_facts(box, CATALOG), CATALOG)


def command(*args, **changes):
    return plan(*args, **changes).cases[0].command


def after(argv, option):
    return argv[argv.index(option) + 1]


def ids(findings):
    return {found.id for found in findings}


@pytest.mark.parametrize("release", TABLE.releases)
def test_every_release_gets_options_that_it_has(release):
    made = command(release, 2, gpu_memory_utilization=0.85, prefix_caching=False)
    assert made.argv[:3] == ("python3", "-m", "sglang.launch_server")
    for word in made.argv[3:]:
        if word.startswith("--"):
            assert TABLE.option(word[2:], release), word
    assert not made.problems
    for option, value in {
        "--model-path": "/model",
        "--served-model-name": "qwen",
        "--host": "0.0.0.0",
        "--port": "8000",
        "--context-length": "32768",
        "--max-running-requests": "8",
        "--tp-size": "2",
        "--mem-fraction-static": "0.85",
        "--kv-cache-dtype": "fp8_e4m3",
        "--speculative-algorithm": "EAGLE",
        "--speculative-num-steps": "2",
        "--speculative-eagle-topk": "1",
        "--speculative-num-draft-tokens": "3",
        "--reasoning-parser": "qwen3",
        "--tool-call-parser": "qwen3_coder",
    }.items():
        assert after(made.argv, option) == value, option
    assert {"--disable-radix-cache", "--enable-metrics", "--disable-custom-all-reduce"} <= set(made.argv)
    assert made.env == {"HF_HUB_OFFLINE": "1", "NCCL_P2P_DISABLE": "1"}
    assert not any("api-key" in word for word in made.argv)


@pytest.mark.parametrize(
    ("declared", "written"), [("fp8", "fp8_e4m3"), ("fp8_e5m2", "fp8_e5m2"), ("bf16", "bf16"), ("auto", None)]
)
def test_formats_of_the_cache_go_by_the_engines_names(declared, written):
    argv = command(kv_cache=declared).argv
    assert (after(argv, "--kv-cache-dtype") if written else "--kv-cache-dtype" in argv) == (written or False)


def test_what_the_engine_decides_is_left_to_it():
    argv = command(context="auto", prefix_caching=None).argv
    assert not {"--context-length", "--mem-fraction-static", "--disable-radix-cache"} & set(argv)


def test_dflash_needs_the_release_that_has_it():
    drafts = {"speculative": Speculative("dflash2", 7)}
    argv = command("0.5.23", **drafts).argv
    assert after(argv, "--speculative-algorithm") == "DFLASH"
    assert after(argv, "--speculative-draft-model-path") == "/drafter"
    assert after(argv, "--speculative-num-draft-tokens") == "8"
    (problem,) = command("0.5.10", **drafts).problems
    assert (problem.rule, problem.path) == ("option-not-yet", "speculative.method")
    assert "since 0.5.11" in problem.message


@pytest.mark.parametrize(
    ("extra", "rule"),
    [
        ({"gpu-memory-utilization": 0.9}, "option-in-no-release"),
        ({"mem-fraction-static": 0.8}, "option-is-declared"),
        ({"config": "/tmp/x.yml"}, "option-is-declared"),
        ({"api-key": "x"}, "option-is-declared"),
        ({"cuda-graph-max-bs": 8}, "option-removed"),
        ({"attention-backend": "flash2"}, "option-value"),
        ({"page-size": "many"}, "option-value"),
        ({"disable-overlap-schedule": "yes"}, "option-value"),
    ],
)
def test_extra_args_are_checked_against_sglangs_own_table(extra, rule):
    (problem,) = command(extra_args=extra).problems
    assert problem.rule == rule
    assert "vLLM" not in problem.message


def test_its_own_options_and_variables_pass():
    made = command(
        extra_args={"attention-backend": "triton", "page-size": 64, "max_total_tokens": 65536},
        env={"SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION": "1024"},
    )
    assert not made.problems
    assert after(made.argv, "--max-total-tokens") == "65536"
    assert made.env["SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION"] == "1024"


def test_a_variable_past_its_registry_is_only_advised_against():
    (problem,) = command(env={"SGLANG_NO_SUCH_THING": "1"}).problems
    assert (problem.rule, problem.sure) == ("variable-unknown", False)


def test_bytes_of_the_pool_are_told_to_be_vllms():
    found = plan(kv_cache_memory_bytes=4 << 30)
    assert [(one.id, one.path) for one in found.gates] == [
        ("option-in-no-release", "box_deployments[0].kv_cache_memory_bytes")
    ]


def test_the_pool_is_said_to_be_unknown_not_invented():
    found = plan()
    memory = found.to_json()["deployments"][0]["memory"]
    assert memory["weights_bytes_per_gpu"] > 10 << 30
    assert memory.get("kv_tokens") is None
    said = next(one for one in found.advice if one.id == "cache-size-unknown")
    assert "how SGLang divides its memory" in said.message
    assert "max_total_num_tokens=" in said.fix[0]


def test_what_cannot_be_checked_is_said_and_not_refused():
    found = plan()
    assert not found.gates
    assert {"sglang-not-gated-for-drafts", "sglang-logs-its-key"} <= ids(found.advice)
    assert "sglang-not-gated-for-drafts" not in ids(plan(speculative=Speculative()).advice)
    assert "sglang-share-is-another" in ids(plan(gpu_memory_utilization=0.9).advice)


def test_rules_of_one_engine_do_not_speak_of_the_other():
    vllms = {"extra_args": {"attention-backend": "FLASH_ATTN"}, "speculative": Speculative("mtp", 6)}
    theirs = plan(image="vllm/vllm-openai:v0.32.0", engine="vllm", **vllms)
    assert "fp8-kv-with-flash-attn" in ids(theirs.gates)
    assert "many-drafts" in ids(theirs.advice)
    ours = plan(speculative=Speculative("mtp", 6))
    about_vllm = {rule.id for rule in rules.registered() if rule.engine == "vllm"}
    assert len(about_vllm) > 10
    assert not about_vllm & (ids(ours.gates) | ids(ours.advice))
    assert not [one for one in (*theirs.gates, *theirs.advice) if one.id.startswith("sglang")]


@pytest.mark.parametrize(
    ("engine", "image", "way"),
    [
        ("sglang", "vllm/vllm-openai:v0.32.0", "engine: vllm"),
        ("vllm", "lmsysorg/sglang:v0.5.23", "engine: sglang"),
        ("llamacpp", "vllm/vllm-openai:v0.32.0", "engine: vllm"),
    ],
)
def test_an_engine_and_an_image_of_another_are_refused(engine, image, way):
    found = plan(engine=engine, image=image)
    refusal = next(one for one in found.gates if one.id == "engine-and-image-differ")
    assert way in refusal.fix


def test_images_tell_their_cuda_and_an_unread_release_has_the_nearest_table():
    assert CATALOG.images.identify("lmsysorg/sglang:v0.5.10").cuda == "12.9"
    assert CATALOG.images.identify("lmsysorg/sglang:v0.5.23").cuda == "13.0"
    assert CATALOG.images.identify("lmsysorg/sglang:v0.5.19-cu129").cuda == "12.9"
    assert CATALOG.images.identify("lmsysorg/sglang:v0.5.20-cu129").problem
    found = plan("0.5.30")
    assert found.cases[0].settings.release == TABLE.releases[-1]
    assert "image-release-unknown" in ids(found.advice)
    assert not found.gates


def test_how_a_host_runs_it_is_in_the_plan():
    made = plan().to_json()["deployments"][0]
    assert made["runtime"] == {
        "key": {"option": "api-key", "file_option": "--config"},
        "env": {},
        "parse": sglang.PARSE,
        "guard": None,
        "health": "/health",
        "metrics": "/metrics",
        "drafts": None,
    }
    assert json.loads(json.dumps(made)) == made


@pytest.mark.parametrize("rig", sorted(path.stem for path in RIGS.glob("*.yml")))
def test_the_reference_rigs_with_another_engine_and_image(rig):
    """Only engine and image are changed in the declaration, as a person would."""
    variables = yaml.safe_load((RIGS / f"{rig}.yml").read_text())
    declared = variables["box_deployments"][0]
    declared |= {"engine": "sglang", "image": "lmsysorg/sglang:v0.5.23"}
    made = box_from_variables(rig, variables)
    found = planner.plan(made, planner.offline_facts(made, CATALOG), CATALOG)
    theirs = yaml.safe_load((RIGS / f"{rig}.yml").read_text())["box_deployments"][0]
    argv = found.cases[0].command.argv
    # One of them names an option of vLLM: it is refused with SGLang's own.
    assert [(one.id, one.fix) for one in found.gates] == [
        ("option-in-no-release", ("mm-enable-dp-encoder: true (this is an option of vLLM)",))
        for name in theirs.get("extra_args", ())
        if name == "mm-encoder-tp-mode"
    ]
    assert after(argv, "--context-length") == str(theirs["context"])
    assert after(argv, "--max-running-requests") == str(theirs["concurrency"])
    assert after(argv, "--kv-cache-dtype") == "fp8_e4m3"
    drafts = theirs["speculative"]["tokens"]
    assert after(argv, "--speculative-num-draft-tokens") == str(drafts + 1)
    assert ("--tp-size" in argv) == (variables["box_gpus"]["count"] > 1)
