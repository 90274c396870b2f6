"""No declaration, however odd, makes planning raise, emit an unknown option or misplace a value."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from boxwright import catalog, planner

_spec = importlib.util.spec_from_file_location(
    "planner_strategies", Path(__file__).with_name("strategies.py")
)
assert _spec
assert _spec.loader
strategies = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = strategies
_spec.loader.exec_module(strategies)

CATALOG = catalog.load()
TABLE = CATALOG.options["vllm"]
SLOW = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@SLOW
@given(strategies.BOXES, strategies.FACTS, st.dictionaries(st.sampled_from(["q", "s"]), strategies.COMMITS))
def test_a_plan_is_always_made(box, facts, revisions):
    made = planner.plan(box, facts, CATALOG, revisions)
    plain = made.to_json()
    json.dumps(plain)
    for found in (*made.gates, *made.advice):
        assert found.message
        assert found.source
    for case, deployment in zip(made.cases, plain["deployments"], strict=True):
        if deployment["memory"]:
            lines = deployment["memory"]["lines"]
            assert sum(line["bytes"] for line in lines) == deployment["memory"]["card_bytes"]
        check_command(case)


@SLOW
@given(strategies.BOXES)
def test_a_plan_is_always_made_offline(box):
    made = planner.plan(box, planner.offline_facts(box, CATALOG), CATALOG)
    for case in made.cases:
        check_command(case)


def check_command(case):
    """Every argument is the program, an option that the release has, or a value behind its option."""
    argv = case.command.argv
    assert argv[:3] == ("vllm", "serve", "/model")
    release = case.settings.release
    option = None
    for word in argv[3:]:
        assert isinstance(word, str)
        assert not any(ord(character) < 32 for character in word)
        if word.startswith("--"):
            name = word[2:].partition(".")[0]
            option = TABLE.option(name, release)
            known = option or (not case.settings.exact and TABLE.exists_in(name))
            assert known, f"{word} in {release}"
        else:
            assert option is None or not option.is_switch, f"{word} is a value of no option"
    names = [word for word in argv if word.startswith("--")]
    for own in ("--max-num-seqs", "--max-num-batched-tokens"):
        assert names.count(own) == 1
    assert not {"--port", "--host", "--api-key"} & set(names)


@SLOW
@given(strategies.DEPLOYMENTS)
def test_secrets_are_in_no_plan(deployment):
    box = strategies.Box(
        "box1", deployments=(deployment,), hub=strategies.Hub(token=strategies.Secret("s3cr3t-t0ken"))
    )
    box = strategies.Box(
        "box1",
        deployments=(
            strategies.Deployment(
                **{
                    **{name: getattr(deployment, name) for name in deployment.__dataclass_fields__},
                    "api_key": strategies.Secret("s3cr3t-k3y"),
                }
            ),
        ),
        hub=box.hub,
    )
    text = json.dumps(planner.plan(box, planner.offline_facts(box, CATALOG), CATALOG).to_json())
    assert "s3cr3t" not in text


@pytest.mark.parametrize("value", ["--api-key=stolen", "-x", "--", "a\nb", "\x00"])
def test_a_value_that_looks_like_an_option_is_refused(value):
    box = strategies.Box(
        "box1",
        deployments=(
            strategies.Deployment(
                "q",
                strategies.ModelRef(name="qwen3-8b"),
                "vllm/vllm-openai:v0.32.0",
                extra_args={"chat-template": value, "middleware": (value,)},
            ),
        ),
    )
    made = planner.plan(box, planner.offline_facts(box, CATALOG), CATALOG)
    assert value not in made.cases[0].command.argv
    assert [found.id for found in made.gates].count("option-value") == 2
